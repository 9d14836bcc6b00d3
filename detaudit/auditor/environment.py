"""What an audit ran on: the part of the environment that bears on determinism, and nothing else."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from detaudit import __version__
from detaudit.auditor.traces import Process

# Whole families where they hold nothing but settings; names where others share the prefix (Terraform's TF_VAR_…).
_FAMILIES = re.compile(
    r"(OMP|MKL|OPENBLAS|KMP|CUBLAS|CUBLASLT|CUDNN|NCCL|ATEN|ONEDNN|DNNL|XLA|NPY|MALLOC)_"
    r"|TORCHINDUCTOR_|TORCH_CUDNN_|TORCH_ALLOW_TF32"
    r"|(PYTHONHASHSEED|GLIBC_TUNABLES|KERAS_BACKEND|CUDA_LAUNCH_BLOCKING|CUDA_VISIBLE_DEVICES|PYTORCH_TUNABLEOP_ENABLED"
    r"|TF_DETERMINISTIC_OPS|TF_CUDNN_DETERMINISTIC|TF_CUDNN_USE_AUTOTUNE|TF_ENABLE_ONEDNN_OPTS|TF_XLA_FLAGS"
    r"|TF_NUM_INTRAOP_THREADS|TF_NUM_INTEROP_THREADS|TF_USE_LEGACY_KERAS)$"
)


def describe(base: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return this machine and the variables that were set before any recipe."""
    system = os.uname()
    return {
        "detaudit": __version__,
        "system": f"{system.sysname} {system.release}",
        "machine": system.machine,
        "cpus": os.cpu_count(),
        "variables": {name: base[name] for name in sorted(base) if _FAMILIES.match(name)},
        "python": None,
        "frameworks": {},
    }


def add_processes(environment: dict[str, Any], processes: Iterable[Process]) -> None:
    """Add the versions that the runs themselves reported."""
    for process in processes:
        environment["python"] = environment["python"] or process.hello.python
        for framework in process.frameworks:
            environment["frameworks"][framework.name] = framework.version
