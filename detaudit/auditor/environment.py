"""What an audit ran on: the part of the environment that bears on determinism, and nothing else."""

import os
import platform
from collections.abc import Iterable, Mapping
from typing import Any

from detaudit import __version__
from detaudit.auditor.traces import Process

_PREFIXES = ("OMP_", "MKL_", "OPENBLAS_", "KMP_", "CUBLAS", "CUDA_", "CUDNN_", "NCCL_", "TF_", "TORCH", "PYTORCH_",
             "ATEN_", "ONEDNN_", "DNNL_", "XLA_", "KERAS_", "NPY_", "MALLOC_", "GLIBC_TUNABLES", "PYTHONHASHSEED")  # fmt: skip


def describe(base: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return this machine and the variables that were set before any recipe."""
    return {
        "detaudit": __version__,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "variables": {name: base[name] for name in sorted(base) if name.startswith(_PREFIXES)},
        "python": None,
        "frameworks": {},
    }


def add_processes(environment: dict[str, Any], processes: Iterable[Process]) -> None:
    """Add the versions that the runs themselves reported."""
    for process in processes:
        environment["python"] = environment["python"] or process.hello.python
        for framework in process.frameworks:
            environment["frameworks"][framework.name] = framework.version
