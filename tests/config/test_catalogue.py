"""The catalogue: its rows are consistent, the recorder records what they set, and known names lead to them."""

import ast
from itertools import combinations
from pathlib import Path

import msgspec
import pytest

from detaudit import wire
from detaudit.config import yamlfile
from detaudit.config.flags import FRAMEWORKS, SEVERAL, Catalogue, Flag, conflict, holds, load_catalogue, with_variables
from detaudit.errors import ConfigError, ExitCode, UnknownNameError
from detaudit.recorder.patches import PATCHES
from detaudit.recorder.process.settings import SETTINGS


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


def flag(id_: str, **fields: object) -> Flag:
    common = {"title": "t", "framework": "python", "when": "before-start", "causes": ["seed"]}
    return msgspec.convert({"id": id_, **common, "by_hand": "s", "source": "s", **fields}, Flag)


def test_the_flags_of_the_first_version_are_there(catalogue: Catalogue) -> None:
    assert set(catalogue.ids) >= {
        "python-hash-seed",
        "python-random-seed",
        "numpy-seed",
        "torch-seed",
        "tensorflow-seed",
        "numpy-default-rng",
        "torch-deterministic-algorithms",
        "torch-cudnn-benchmark-off",
        "tensorflow-op-determinism",
        "system-aslr-off",
    }


def test_each_flag_is_in_the_file_of_its_framework_and_named_after_it() -> None:
    folder = yamlfile.configs_dir() / "flags"
    assert {path.stem for path in folder.glob("*.yaml")} == set(FRAMEWORKS)
    for framework in FRAMEWORKS:
        for row in load_file(framework):
            assert row.framework == framework
            assert row.id.startswith((f"{framework}-", "openblas-")), row.id


def load_file(framework: str) -> list[Flag]:
    return yamlfile.load(yamlfile.configs_dir() / "flags" / f"{framework}.yaml", list[Flag])


def test_each_flag_does_something_or_is_by_hand_only_and_has_a_source(catalogue: Catalogue) -> None:
    for row in catalogue:
        assert not row.by_hand_only or row.action == "opt-in", row.id
        assert row.by_hand_only or row.runs_inside == bool(row.call or row.set or row.patch), row.id
        assert not row.patch or row.patch in PATCHES
        assert row.source
        assert row.by_hand
        assert row.causes
        assert row.devices


def test_the_recorder_records_what_a_flag_sets(catalogue: Catalogue) -> None:
    switches = {f"{module}.{dotted}" for module, all_ in SETTINGS.items() for dotted in all_}
    for row in catalogue:
        assert all(map(wire.affects_determinism, row.env)), row.id
        assert set(row.expect) <= switches, row.id


def test_kernels_of_packages_beside_torch_have_flags(catalogue: Catalogue) -> None:
    found = {
        variable: row.action
        for row in catalogue
        if row.framework == "torch" and row.devices == ("gpu",)
        for variable in row.env
    }
    assert (
        found.items()
        >= {
            "FLASH_ATTENTION_DETERMINISTIC": "standard",  # the switch of torch does not reach these two
            "NVTE_ALLOW_NONDETERMINISTIC_ALGO": "standard",
            "MAMBA_DETERMINISTIC": "fallback",
            "CAUSAL_CONV1D_DETERMINISTIC": "fallback",
            "MIOPEN_DEBUG_CONVOLUTION_DETERMINISTIC": "fallback",
            "VLLM_BATCH_INVARIANT": "opt-in",
        }.items()
    )


def test_two_flags_that_give_a_variable_different_values_conflict(catalogue: Catalogue) -> None:
    found = 0
    for a, b in combinations(catalogue, 2):
        if any(a.env[name] != b.env[name] for name in {*a.env} & {*b.env} - {*SEVERAL}):
            found += 1
            assert conflict((a, b)) == (a, b), f"{a.id} and {b.id}"
    assert found


def test_standard_flags_do_not_conflict_and_leave_threads_and_precision_alone(catalogue: Catalogue) -> None:
    standard = catalogue.standard()
    assert {"torch-deterministic-algorithms", "tensorflow-op-determinism", "numpy-default-rng"} < standard
    assert not {word for word in standard if "thread" in word or "tf32" in word or word.startswith(("nccl", "mkl"))}
    assert conflict(catalogue.select(standard)) is None


def test_gpu_flags_are_standard_only_if_there_may_be_a_gpu(catalogue: Catalogue) -> None:
    on_a_cpu = catalogue.standard({"cpu"})
    assert "cuda-cublas-workspace" in catalogue.standard() - on_a_cpu
    assert "jax-xla-deterministic-ops" in catalogue.standard({"cpu", "gpu"}) - on_a_cpu
    assert "torch-seed" in on_a_cpu


def test_alternatives(catalogue: Catalogue) -> None:
    assert catalogue.get("torch-deterministic-algorithms").alternatives == (
        "torch-deterministic-warn",
        "openmp-one-thread",
    )
    assert catalogue.get("tensorflow-op-determinism").alternatives == ("tensorflow-one-thread",)
    for row in catalogue:
        assert row.id not in row.alternatives


def test_a_variable_of_several_settings_is_extended() -> None:
    ops, autotune = (flag(name, env={"XLA_FLAGS": f"--{name}=1", "OTHER": "2"}) for name in ("ops", "autotune"))
    given = {"XLA_FLAGS": "--mine=3", "OTHER": "1"}
    env = with_variables(given, [ops, autotune], 0)
    assert env == {"XLA_FLAGS": "--mine=3 --ops=1 --autotune=1", "OTHER": "2"}
    assert with_variables(env, [ops], 0) == env
    assert with_variables({}, [ops], 0)["XLA_FLAGS"] == "--ops=1"
    assert given == {"XLA_FLAGS": "--mine=3", "OTHER": "1"}


def test_a_variable_of_several_settings_holds_each_of_them() -> None:
    assert holds("XLA_FLAGS", "--mine=3 --ops=1", "--ops=1")
    assert not holds("XLA_FLAGS", "--mine=3 --ops=10", "--ops=1")
    assert not holds("XLA_FLAGS", None, "--ops=1")
    assert holds("GLIBC_TUNABLES", "glibc.a=1:glibc.b=2", "glibc.b=2")
    assert not holds("OTHER", "1 2", "2")


RETIRED = yamlfile.load_retired()


@pytest.mark.parametrize("row", RETIRED, ids=lambda row: row.id)
def test_a_retired_setting_has_a_reason_and_a_replacement(catalogue: Catalogue, row: yamlfile.Retired) -> None:
    assert row.id not in catalogue.ids
    assert row.replacement or row.status == "irrelevant"
    for known in (row.id, *row.names, *(f"{name}=1" for name in row.names if "=" not in name)):
        with pytest.raises(UnknownNameError) as caught:
            catalogue.get(known)
        assert row.why in caught.value.message, known
        assert row.replacement in caught.value.hint
        assert caught.value.exit_code == ExitCode.USAGE
    if row.replacement:
        catalogue.get(row.replacement)


def test_no_setting_of_a_flag_is_retired(catalogue: Catalogue) -> None:
    for row in catalogue:
        for word in row.setting_names:
            assert yamlfile.retired(word) is None, word


def test_well_known_dead_settings_are_retired() -> None:
    for word in (
        "TF_CUDNN_USE_FRONTEND",
        "--xla_gpu_deterministic_reductions",
        "XLA_FLAGS=--xla_gpu_deterministic_reductions=true",
        "TORCH_CUDNN_V8_API_ENABLED",
        "tfdeterminism",
        "GATE_GRAPH",
        "KMP_DETERMINISTIC_REDUCTION",
        "torch.backends.mkldnn.deterministic",
        "NCCL_ALGO=^NVLS",
    ):
        assert yamlfile.retired(word) is not None, word
    assert yamlfile.retired("NCCL_ALGO=Ring") is None


@pytest.mark.parametrize(
    ("word", "ids"),
    [
        ("OMP_NUM_THREADS", "openmp-one-thread"),
        ("OMP_NUM_THREADS=1", "openmp-one-thread"),
        ("NCCL_ALGO", "nccl-algo-ring"),
        ("--xla_gpu_deterministic_ops=true", "jax-xla-deterministic-ops"),
        ("use_deterministic_algorithms", "torch-deterministic-algorithms, torch-deterministic-warn"),
        ("cudnn.benchmark", "torch-cudnn-benchmark-off"),
    ],
)
def test_a_setting_leads_to_the_flags_that_set_it(catalogue: Catalogue, word: str, ids: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        catalogue.get(word)
    assert caught.value.hint == f"Flags that set it: {ids}."


def test_a_duplicate_flag_or_an_unknown_alternative_is_an_error(tmp_path: Path) -> None:
    row = "- {id: a, title: t, framework: torch, when: after-import, causes: [], by_hand: s, source: s, "
    row += "alternatives: [b]}\n"
    (tmp_path / "flags.yaml").write_text(row * 2)
    with pytest.raises(ConfigError, match="duplicate flag 'a'"):
        load_catalogue(tmp_path / "flags.yaml")
    (tmp_path / "flags.yaml").write_text(row)
    with pytest.raises(UnknownNameError, match="'b'"):
        load_catalogue(tmp_path / "flags.yaml")


def test_what_is_done_by_hand_before_python_starts_is_a_command_and_after_an_import_a_statement(
    catalogue: Catalogue,
) -> None:
    for row in (row for row in catalogue if not (row.by_hand_only or row.patch)):
        line = row.by_hand.partition("    #")[0]
        if row.when == "before-start":
            words = line.split()
            assert words[0].partition("=")[0] in row.env, row.id
            assert [word.partition("=")[0] in row.env for word in words if "=" in word], row.id
        else:
            tree = ast.parse(line)
            assert all(isinstance(one, ast.Expr | ast.Assign) for one in tree.body), row.id


def test_a_command_sets_all_that_a_flag_requires_before_python_starts(catalogue: Catalogue) -> None:
    command = "PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 setarch -R python train.py"
    assert catalogue.command("system-aslr-off") == command
