"""The pytest plugin in real sessions that audit their tests in fresh processes."""

import json
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

from detaudit.compat import tomllib

pytest_plugins = ("pytester",)

ROOT = Path(__file__).parents[2]


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A user's folder. No plugin loads by itself, so that the test does not depend on those that are installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "detaudit.pytest_plugin")
    return pytester


def audits(session: pytest.Pytester) -> list[Path]:
    return sorted((session.path / ".detaudit").glob("*/audit.json"))


@pytest.mark.slow
def test_returned_values_are_compared(session: pytest.Pytester) -> None:
    session.makepyfile(
        """
        import random, pytest

        @pytest.fixture(scope="session")
        def noise():
            return random.Random(3)

        @pytest.mark.deterministic(runs=2)
        class TestOfAClass:
            @pytest.mark.parametrize("scale", [2, "a[b]::c d"])
            def test_equal(self, scale, noise, tmp_path):
                return {"x": [noise.random(), scale], "where": str(tmp_path)}

        @pytest.mark.deterministic(runs=3)
        def test_differing():
            return {"a": 1, "b": random.random()}

        @pytest.mark.deterministic(runs=2, recipe="seeds", seed=4)
        def test_seeded_by_the_recipe():
            return random.random()

        def test_without_the_mark():
            pass
        """
    )
    result = session.runpytest_subprocess("--strict-markers", "-W", "error")
    result.assert_outcomes(passed=4, failed=1)
    out = result.stdout.str()
    assert (
        "@pytest.mark.deterministic: nondeterministic: runs 1 and 2 first differ in the returned value ['b']: " in out
    )
    assert re.search(r"'returned\['b'\]' .*: 0\.\d+ in run 1, 0\.\d+ in run 2", out)
    assert '@pytest.mark.deterministic(recipe="seeds")' in out
    assert "pytest_plugin" not in out.replace("detaudit.pytest_plugin", "")  # There is no traceback through it.
    (kept,) = audits(session)
    group = json.loads(kept.read_text())["groups"][0]
    assert len(group["runs"]) == 2  # It stops at the first two that differ.
    assert f"logs: .detaudit/{kept.parent.name}" in out
    assert (session.path / ".detaudit" / ".gitignore").read_text() == "*\n"


@pytest.mark.full
def test_times_that_a_test_returns_are_no_difference(session: pytest.Pytester) -> None:
    session.makepyfile(
        """
        import random, time, pytest

        @pytest.mark.deterministic(runs=2)
        @pytest.mark.parametrize("name", ["elapsed", "fit_time", "time_ms", "samples_per_sec"])
        def test_equal(name):
            began = time.perf_counter()
            return {"loss": 1.0, "all": [{name: 1e3 * (time.perf_counter() - began)}]}

        @pytest.mark.deterministic(runs=2)
        @pytest.mark.parametrize("name", ["arrival_time", "lifetime", "loss"])
        def test_differing(name):
            return {"loss": 1.0, "all": [{name: random.random()}]}
        """
    )
    session.runpytest_subprocess("--strict-markers").assert_outcomes(passed=4, failed=3)


@pytest.mark.full
@pytest.mark.parametrize("steps", [3, 20, 200])
def test_a_run_that_was_stopped_lacks_no_returned_value(session: pytest.Pytester, steps: int) -> None:
    session.makepyfile(
        f"""
        import random, time, pytest
        import detaudit

        @pytest.mark.deterministic(runs=2)
        def test_training():
            for step in range({steps} + 100):
                weight = random.random() if step >= {steps} else 1.0
                detaudit.record(loss=weight, weights=[weight])
                time.sleep(0.002)
            return weight
        """
    )
    out = session.runpytest_subprocess("--strict-markers").stdout.str()
    assert f"runs 1 and 2 first differ at step {steps + 1}" in out


@pytest.mark.slow
def test_trained_models_are_compared(session: pytest.Pytester) -> None:
    example = re.findall(r"```python\n(# test_training.py.*?)```", (ROOT / "docs" / "pytest.md").read_text(), re.DOTALL)
    session.makepyfile(test_training=example[0])
    result = session.runpytest_subprocess()
    result.assert_outcomes(passed=1, failed=1)
    out = result.stdout.str()
    (transcript,) = re.findall(r"```\n(@pytest.mark.*?)```", (ROOT / "docs" / "pytest.md").read_text(), re.DOTALL)
    assert transcript.strip() in out
    assert "FAILED test_training.py::test_without_a_seed" in out
    compared = "compared: init, rng, forward, update; the value returned by the test; printed text; the exit status"
    assert f"{compared}; not recorded: batch, backward" in out


@pytest.mark.slow
def test_an_inconclusive_test_fails_with_the_output_of_the_run(session: pytest.Pytester) -> None:
    session.makepyfile(
        """
        import pytest

        @pytest.fixture
        def number():
            return 41

        @pytest.mark.deterministic(runs=2)
        def test_nothing():
            pass

        @pytest.mark.deterministic(runs=2)
        def test_failing(number):
            print("said on the way")
            assert number + 1 == 43
            return 1

        @pytest.mark.deterministic(runs=2)
        def test_a_set():
            return {1, 2}

        @pytest.mark.deterministic(runs=2)
        def test_skipping():
            pytest.skip("no such device")

        @pytest.mark.xfail(strict=True)
        @pytest.mark.deterministic(runs=2)
        def test_expected_to_fail():
            return 1 / 0
        """
    )
    result = session.runpytest_subprocess("-rs")
    result.assert_outcomes(failed=3, skipped=1, xfailed=1)
    out = result.stdout.str()
    reasons = re.findall(r"^@pytest.mark.deterministic: inconclusive: (.+)", out, re.MULTILINE)
    assert len(reasons) == 3
    assert sum("exit status 1" in reason for reason in reasons) == 2
    assert "no training detected: none of torch, " in out
    assert "A test with this mark must train a model or return a value to compare." in out
    assert "  | >       assert number + 1 == 43" in out
    assert "  | said on the way" in out
    returnable = "a test can return numbers, strings, arrays, tensors and nests of them, not builtins.set"
    assert f"cannot compare the value that the test returned: TypeError: {returnable}\n" in out
    assert "no such device" in out


def test_invalid_marks_are_refused(session: pytest.Pytester) -> None:
    session.makepyfile(
        """
        import unittest, pytest

        @pytest.mark.deterministic(runs=1)
        def test_one_run():
            return 1

        @pytest.mark.deterministic(recipes="all")
        def test_misspelt():
            return 1

        @pytest.mark.deterministic(recipe="sedes")
        def test_unknown_recipe():
            return 1

        @pytest.mark.deterministic
        async def test_async():
            return 1

        class TestCase(unittest.TestCase):
            @pytest.mark.deterministic
            def test_of_unittest(self):
                pass
        """
    )
    result = session.runpytest_subprocess()
    result.assert_outcomes(errors=4, failed=1)
    out = result.stdout.str()
    assert "@pytest.mark.deterministic: runs must be an integer of at least 2, got 1" in out
    assert "@pytest.mark.deterministic: unknown argument 'recipes'" in out
    assert "@pytest.mark.deterministic: error: unknown recipe 'sedes'" in out
    assert "@pytest.mark.deterministic does not support async tests" in out
    assert "@pytest.mark.deterministic works only on plain functions and on methods of plain classes" in out
    assert audits(session) == []


def test_the_users_options_reach_the_runs_and_those_of_the_session_do_not(
    session: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.makeconftest(
        """
        import pytest
        def pytest_addoption(parser):
            parser.addoption("--device", default="cpu")
            parser.addini("scale", "")
        @pytest.fixture
        def device(request):
            return request.config.getoption("device") + request.config.getini("scale")
        """
    )
    session.makefile(
        ".toml", pyproject='[tool.pytest.ini_options]\naddopts = "--ff -n 2 -p xdist"\nscale = "big"\n'
        'detaudit_args = "-p no:faulthandler"\n',
    )  # fmt: skip
    session.makepyfile(
        """
        import os, pytest
        @pytest.mark.deterministic(runs=2)
        def test_options(device, request):
            assert device == "cudabig"
            assert request.config.getoption("numprocesses", None) is None
            assert not request.config.pluginmanager.hasplugin("faulthandler")
            assert not [name for name in os.environ if name.startswith(("PYTEST_XDIST", "DETAUDIT_PYTEST"))]
            return device
        """
    )
    monkeypatch.setenv("PYTEST_ADDOPTS", "--device=cuda")
    result = session.runpytest_subprocess()
    result.assert_outcomes(passed=1)
    assert "2 workers" in result.stdout.str()


def test_a_bitwise_difference_is_reported_as_documented(session: pytest.Pytester) -> None:
    text = (ROOT / "docs" / "pytest.md").read_text()
    (example,) = re.findall(r"```python\n(# test_equal.py.*?)```", text, re.DOTALL)
    (transcript,) = re.findall(r"```\n(AssertionError.*?)```", text, re.DOTALL)
    session.makepyfile(test_equal=example)
    result = session.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    shown = [line.removeprefix("E").strip() for line in result.stdout.lines]
    for line in transcript.strip().splitlines():
        assert line.strip() in shown
    assert not [line for line in shown if "raise AssertionError" in line]


def test_an_installation_registers_the_plugin(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    (name, module), *others = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][
        "pytest11"
    ].items()
    assert not others
    assert import_module(module).pytest_pyfunc_call
    info = pytester.mkdir("site") / "detaudit_here-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: detaudit-here\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[pytest11]\n{name} = {module}\n")
    monkeypatch.setenv("PYTHONPATH", str(info.parent), prepend=":")
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)
    result = pytester.run(sys.executable, "-m", "pytest", "--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.deterministic(runs=3, *"])
