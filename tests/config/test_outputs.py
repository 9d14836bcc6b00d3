"""The table of what is only listed: which files its rows are about, and which not."""

import hashlib
from pathlib import Path

import pytest

from detaudit.config.outputs import Listed, folder_parts, load_outputs
from detaudit.errors import ConfigError

TAG = "Signature: 8a477f597d28d172789f06886806bc55\n"


def row(path: Path, cwd: Path, **env: str) -> str | None:
    found = Listed(env).row(str(path), str(cwd))
    return found.id if found is not None else None


def write(path: Path, data: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a/__pycache__/m.cpython-311.pyc", b"", "bytecode"),
        ("torchinductor_me/ab/cab.py", b"", "inductor-cache"),
        ("home/.triton/cache/x/k.cubin", b"", "triton-cache"),
        ("home/.cache/torch/kernels/k", b"", "torch-kernels"),
        ("home/.pytensor/compiledir_Linux-6--3.11.7-64/tmp1p5asquf/m2.so", b"", "pytensor-cache"),
        ("home/.pyxbld/lib.linux-x86_64/a.so", b"", "pyximport-cache"),
        ("home/.cache/warp/1.9.0/wp_a/wp_a.cubin", b"", "warp-cache"),
        ("home/.cache/taichi/ticache/llvm/T1.tic", b"", "taichi-cache"),
        ("wandb/run-1/files/config.yaml", b"", "wandb"),
        ("wandb/run-1/files/wandb-summary.json", b"{}", None),
        ("home/.cache/wandb/logs/core-debug-20261129_110300.log", b"", "wandb"),
        ("mlruns/0/abc/meta.yaml", b"", "mlflow"),
        ("mlruns/0/abc/artifacts/estimator.html", b"", "mlflow"),
        ("mlruns/0/abc/artifacts/report.html", b"", None),
        ("home/.clearml/cache/offline/offline-1/log.jsonl", b"", "clearml"),
        ("home/.clearml/cache/offline/offline-1/metrics.jsonl", b"", None),
        (".cometml-runs/1.zip", b"", "comet"),
        (".neptune/offline/run__1/data-1.log", b"", "neptune"),
        ("home/.ipython/profile_default/startup/README", b"", "ipython"),
        ("runs/_sources/t_0cc175b9c0f1b6a831c399e269772661.py", b"a", "sacred-sources"),
        ("runs/_sources/t_0cc175b9c0f1b6a831c399e269772661.py", b"b", None),
        ("mlruns/0/abc/metrics/loss", b"1 0.5 1", None),
        ("meta.yaml", b"", None),
        ("lightning_logs/version_0/hparams.yaml", b"", None),
        ("runs/events.out.tfevents.1.host.2.0", b"", None),
        ("runs/events.out.tfevents.1.host.profile-empty", b"", "tensorboard-profile"),
        ("a.json", b'{"schemaVersion": 1, "traceEvents": [', "trace"),
        ("core.12", b"\x7fELF" + bytes([2, 1, 1]) + bytes(9) + b"\x04\x00", "core-dump"),
        ("core.12", b"a result", None),
        ("train.lock", b"", "lock-files"),
        ("train.pid", b"1234\n", "lock-files"),
        ("train.pid", b"1234\n" * 100, "lock-files"),
        ("train.pid", b"1234\nrest\n", None),
        ("train.pid", b"1234\n" * 1000, None),
        ("uv.lock", b"version = 1\n" * 10, None),
        (".git/index", b"", "git"),
        (".snakemake/log/2026-11-29T105851.627705.snakemake.log", b"", "snakemake"),
        (".dvc/cache/files/md5/3d/e6b66f938835ecce651e67cb970b86", b"", "dvc"),
        ("dvc.lock", b"schema: '2.0'\n" * 20, None),
        ("home/.prefect/prefect.db", b"", "prefect"),
        (".metaflow/TrainFlow/1795950305153245/train/2/0.task_end", b"", "metaflow"),
        (".metaflow/TrainFlow/data/ab/abcd", b"", None),
        (".doit.db.dat", b"", "doit"),
        ("a/.ipynb_checkpoints/b.ipynb", b"", "notebook-checkpoints"),
        ("study.db-journal", b"", "sqlite-journal"),
        ("train-journal", b"", None),
        (".coverage", b"", "coverage"),
        ("a.csv", b"1", None),
    ],
)
def test_rows(tmp_path: Path, name: str, data: bytes, expected: str | None) -> None:
    assert row(write(tmp_path / name, data), tmp_path) == expected


def test_the_folder_of_the_training_itself_does_not_matter(tmp_path: Path) -> None:
    cwd = tmp_path / ".pytest_cache" / "project"
    env = {"TMPDIR": str(tmp_path / "temporary")}
    assert row(write(cwd / "a.csv"), cwd, **env) is None
    assert row(write(tmp_path / ".pytest_cache" / "other.csv"), cwd, **env) == "test-caches"


def test_temporary_files_are_those_of_the_run(tmp_path: Path) -> None:
    path = write(tmp_path / "temporary" / "a.csv")
    assert row(path, tmp_path / "cwd", TMPDIR=str(tmp_path / "temporary")) == "temporary"
    assert row(path, tmp_path / "cwd", TMPDIR=str(tmp_path / "other")) is None
    assert row(path, path.parent, TMPDIR=str(tmp_path)) is None


def test_a_cache_is_marked_by_the_signature_of_its_tag(tmp_path: Path) -> None:
    path = write(tmp_path / "c" / "deep" / "a.npy")
    (tmp_path / "c" / "CACHEDIR.TAG").write_text("")
    assert row(path, tmp_path) is None
    (tmp_path / "c" / "CACHEDIR.TAG").write_text(TAG)
    assert row(path, tmp_path) == "cache-tag"


def test_a_virtual_environment(tmp_path: Path) -> None:
    write(tmp_path / "env" / "pyvenv.cfg")
    assert row(write(tmp_path / "env" / "lib" / "a.py"), tmp_path) == "virtual-environment"


def test_downloads_are_named_by_their_content(tmp_path: Path) -> None:
    data = b"weights"
    sha256, sha1 = hashlib.sha256(data).hexdigest(), hashlib.sha1(b"blob 7\0weights").hexdigest()
    for name in (sha256, sha1):
        assert row(write(tmp_path / "models--a" / "blobs" / name, data), tmp_path) == "hub-files"
        assert row(write(tmp_path / "models--b" / "blobs" / name, b"other"), tmp_path) is None
    assert row(write(tmp_path / f"resnet-{sha256[:8]}.pth", data), tmp_path) == "downloaded-checkpoint"
    assert row(write(tmp_path / "resnet-12345678.pth", data), tmp_path) is None


def test_a_cache_is_where_a_variable_says(tmp_path: Path) -> None:
    kernel, other = write(tmp_path / "tmp/k/ab/cab.cpp"), write(tmp_path / "tmp/kept.cpp")
    env = {"TMPDIR": str(tmp_path / "tmp"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "tmp/k/")}
    assert row(kernel, tmp_path / "work", **env) == "inductor-cache"
    assert row(other, tmp_path / "work", **env) == "temporary"
    assert row(kernel, tmp_path / "tmp/k/ab", **env) is None  # what it works in is no cache
    assert row(kernel, tmp_path / "tmp/k", **env) is None
    for folder in ("k", env["TMPDIR"], str(tmp_path)):
        assert row(kernel, tmp_path / "work", **{**env, "TORCHINDUCTOR_CACHE_DIR": folder}) == "temporary"


def test_every_row_is_explained() -> None:
    for one in load_outputs():
        assert one.source.startswith("https://"), one.id
        assert one.reason, one.id
        assert one.what, one.id


def test_the_recorder_gets_folders_without_patterns() -> None:
    found = folder_parts(
        load_outputs(), {"NUMBA_CACHE_DIR": "/x/jit/", "TRITON_CACHE_DIR": "rel", "CUDA_CACHE_PATH": "/w"}, "/w/a"
    )
    assert "/.triton/cache/" in found
    assert "/torchinductor_" in found
    assert "/x/jit/" in found
    assert not {"/w/", "rel/"} & {*found}  # it works in the one, and nobody knows where the other is
    assert not any(character in part for part in found for character in "*?[")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("- {id: a, what: a, reason: a, source: a, names: [a]}\n" * 2, r":2:8: duplicate row 'a'"),
        ("- {id: a, what: a, reason: a, source: a}\n", r":1:3: 'a' needs"),
        ("- {id: a, what: a, reason: a, source: a, check: other}\n", r":1:49: Invalid enum value"),
    ],
)
def test_a_broken_table_is_refused_with_its_place(tmp_path: Path, text: str, error: str) -> None:
    path = write(tmp_path / "outputs.yaml", text.encode())
    with pytest.raises(ConfigError, match=error):
        load_outputs(path)
