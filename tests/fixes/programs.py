"""Fix programs that packages ship, unmodified: ``python -m tests.fixes.programs [NAMES]``.

Their sources come from PyPI and are kept in build/programs/, with what is known of each, so that it can be interrupted;
docs/lab/fixes-programs.md has the results. The packages are installed in this Python's environment.
"""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "programs"
PAGE = ROOT / "docs" / "lab" / "fixes-programs.md"

HEAD = """# What fix makes of programs that packages ship

Written by `make test-programs`. Each program is an example in the source distribution of a package, as it is there:
nobody planted a bug in it. `detaudit fix` works on a copy of its file. *Differed at* says where runs differ without
each of the changes, or with none. *Harmless* is *yes* if batches were compared: with no change, one repeats that did
not before. Seconds are those of the whole command on two cores with much other work on them; runs say more. Notebooks
of GPyTorch run with `CI=1`, which makes them train for two steps, and DeepXDE with its backend for torch.

"""

COLUMNS = """| program | package | differed at | changes | outcome | harmless | runs | seconds |
|---|---|---|---|---|---|---|---|"""


class Program(NamedTuple):
    """A program in the source distribution of a package, and environment variables."""

    package: str
    path: str
    variables: Mapping[str, str] = {}


DEEPXDE, GPYTORCH, IMBALANCED = "deepxde==1.15.0", "gpytorch==1.15.2", "imbalanced-learn==0.14.2"

NOTEBOOKS = (
    "00_Basic_Usage/Implementing_a_custom_Kernel",
    "01_Exact_GPs/Simple_GP_Regression",
    "01_Exact_GPs/GP_Regression_DistributionalKernel",
    "01_Exact_GPs/GP_Regression_on_Classification_Labels",
    "01_Exact_GPs/Spectral_Mixture_GP_Regression",
    "02_Scalable_Exact_GPs/KISSGP_Regression",
    "03_Multitask_Exact_GPs/Batch_Independent_Multioutput_GP",
    "03_Multitask_Exact_GPs/Hadamard_Multitask_GP_Regression",
    "03_Multitask_Exact_GPs/ModelList_GP_Regression",
    "03_Multitask_Exact_GPs/Multitask_GP_Regression",
    "08_Advanced_Usage/Simple_Batch_Mode_GP_Regression",
    "08_Advanced_Usage/Simple_GP_Regression_Derivative_Information_1d",
)

PROGRAMS = {
    "plot_bagging_classifier": Program(IMBALANCED, "examples/ensemble/plot_bagging_classifier.py"),
    "plot_pipeline_classification": Program(IMBALANCED, "examples/pipeline/plot_pipeline_classification.py"),
    "plot_multi_class_under_sampling": Program(IMBALANCED, "examples/applications/plot_multi_class_under_sampling.py"),
    **{Path(one).name: Program(GPYTORCH, f"examples/{one}.ipynb", {"CI": "1"}) for one in NOTEBOOKS},
    "func": Program(DEEPXDE, "examples/function/func.py", {"DDE_BACKEND": "pytorch"}),
    "diffusion_1d_resample": Program(
        DEEPXDE, "examples/pinn_forward/diffusion_1d_resample.py", {"DDE_BACKEND": "pytorch"}
    ),
}


def source(package: str) -> Path:
    """Return the folder of a package's source distribution, which is downloaded once."""
    folder = KEPT / package
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=KEPT) as part:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", package]
            subprocess.run(command, cwd=part, check=True)
            (archive,) = Path(part).glob("*.tar.gz")
            with tarfile.open(archive) as tar:
                tar.extractall(part, filter="data")
            archive.unlink()
            (root,) = Path(part).iterdir()
            root.rename(folder)
    return folder


def fix(program: Program) -> dict[str, Any]:
    """Run detaudit fix on a copy of a program. Raises ValueError without a report, and if a run fails."""
    path = source(program.package) / program.path
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / path.name).write_bytes(path.read_bytes())
        command = [
            sys.executable,
            "-m",
            "detaudit",
            "fix",
            path.name,
            "--quiet",
            "--format",
            "json",
            "--out",
            "results",
        ]
        began, environment = time.monotonic(), {**os.environ, "MPLBACKEND": "agg", **program.variables}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - began
    if not done.stdout:
        raise ValueError(f"exit status {done.returncode}: {done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout)
    failed = [run["stderr_tail"] for group in report["groups"] for run in group["runs"] if run["exit_code"]]
    if failed:
        raise ValueError("\n".join(failed[0]))
    return {**report, "seconds": round(seconds)}


def row(program: Program, report: Mapping[str, Any]) -> str:
    """Return a line of the table: the program, where runs differ without each change, the changes, what came of it."""
    hunks, variables, group = report["hunks"], report["variables"], report["groups"][-1]
    left = [{"without": group["first_difference"]}]
    differences = [one["without"] for one in hunks or left if one["without"] is not None]
    stages = "; ".join(dict.fromkeys(shown(one) for one in differences)) or "nothing"
    changes = [f"`{line.strip()}`" for hunk in hunks for line in hunk["new"] if line.strip()]
    changes += [f"`{one['name']}={one['value']}`" for one in variables]
    if report["verdict"] != "deterministic":
        outcome = (
            f"{report['verdict']} still, at {shown(left[0]['without'])}" if left[0]["without"] else report["verdict"]
        )
    else:
        proof = sum(run["status"] == "ok" for run in group["runs"])
        outcome = f"proven by {proof} runs" if hunks else "nothing to fix"
    harmless = "" if not hunks else "yes" if "batch" in group["stages"] else "no batches"
    return (
        f"| {Path(program.path).name} | {program.package} | {stages} | {'; '.join(changes)} | {outcome} | {harmless} "
        f"| {report['total_runs']} | {report['seconds']} |"
    )


def shown(difference: Mapping[str, Any]) -> str:
    """Return where two runs differ."""
    step, stage = difference["step"], difference["stage"]
    return str(stage) if difference["at_end"] or not step else f"step {step} ({stage})"


def main(names: Sequence[str]) -> int:
    """Fix what is not known yet and write the page."""
    KEPT.mkdir(parents=True, exist_ok=True)
    for name in names or PROGRAMS:
        kept = KEPT / f"{name}.json"
        try:
            if not kept.exists():
                kept.write_text(json.dumps(fix(PROGRAMS[name]), indent=1))
        except ValueError as error:
            print(f"{name}: {error}", flush=True)
            continue
        print(row(PROGRAMS[name], json.loads(kept.read_text())), flush=True)
    known = [
        row(program, json.loads((KEPT / f"{name}.json").read_text()))
        for name, program in PROGRAMS.items()
        if (KEPT / f"{name}.json").exists()
    ]
    measured = f"{len(known)} of {len(PROGRAMS)} programs are measured."
    PAGE.write_text(f"{HEAD}{measured}\n\n{COLUMNS}\n" + "\n".join(known) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
