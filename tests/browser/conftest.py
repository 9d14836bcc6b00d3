"""Reports of real audits, each as an HTML file, and a browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import chromium
from tests.process.conftest import Project

HOSTILE = "</pre></script><script>window.owned = 1</script><img src=x onerror=window.owned=1>"

SCRIPTS = {
    "differs.py": """
        import random
        import training
        random.seed(0)
        training.train(steps=4)
        noise = random.SystemRandom().random()
        import detaudit
        for step in range(5, 30):
            detaudit.record(loss=1 / step + noise * 1e-6, weights=[noise])
    """,
    "same.py": "import training\nprint(training.train(seed=0))\n",
    "unseeded.py": "import training\ntraining.train()\n",
    "hostile.py": f"""
        import os, sys, training
        training.train()
        print({HOSTILE!r}, file=sys.stderr)
        if os.environ["DETAUDIT_MARK"] and not os.path.exists("ran"):
            open("ran", "w").close()
        else:
            raise ValueError({HOSTILE!r})
    """,
}

CHECK = """
    [tool.detaudit.audits.seeded]
    command = "same.py"
    runs = 2

    [tool.detaudit.audits.unseeded]
    command = "unseeded.py"
    runs = 2
"""

COMMANDS = {
    "run": ("run", "differs.py", "--runs", "4", "--recipe", "none", "--recipe", "seeds"),
    "deterministic": ("run", "same.py", "--runs", "3"),
    "many": ("run", "differs.py", "--runs", "14"),
    "hostile": ("run", "hostile.py", "--runs", "3"),
    "bisect": ("bisect", "unseeded.py"),
    "vary": ("bisect", "same.py", "--over", "variations"),
    "trace": ("trace", "unseeded.py"),
    "check": ("check", "--config", "audits.toml"),
}


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory, browser: chromium.Chromium) -> dict[str, Path]:
    """Return the HTML reports of real audits, which are made only if there is a ``browser``."""
    folder = tmp_path_factory.mktemp("pages") / "project"
    folder.mkdir()
    project = Project(folder)
    for name, text in SCRIPTS.items():
        project.write(name, text)
    project.write("audits.toml", CHECK)
    found = {}
    for name, words in COMMANDS.items():
        made = project.detaudit(*words, "--format", "html", "--out", f"out-{name}", "-q")
        found[name] = folder / f"{name}.html"
        assert made.out.startswith("<!doctype html>"), made.err
        found[name].write_text(made.out)
    compared = project.detaudit("compare", "out-run", "out-many", "--format", "html")
    found["compare"] = folder / "compare.html"
    found["compare"].write_text(compared.out)
    return found


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Chromium]:
    """Return a browser."""
    if chromium.PROGRAM is None:
        pytest.skip("needs Chromium")
    with chromium.Chromium(tmp_path_factory.mktemp("chromium")) as found:
        yield found
