"""Results of audits whose runs are written by the test, and archives of them."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from detaudit import store
from detaudit.audit import Auditor
from detaudit.evidence import archive, materials, pack
from detaudit.evidence.archive import Source
from detaudit.evidence.materials import Git, Package
from detaudit.evidence.statement import NAME, statement
from detaudit.evidence.verify import Verified, verify
from detaudit.model import Audit, to_json
from tests.fakes import FakeLauncher, run, settings, training

DIFF = b"--- a/train.py\n+++ b/train.py\n"
GIT = Git(commit="c" * 40, diff=hashlib.sha256(DIFF).hexdigest(), untracked=("notes.txt",))
PACKAGES = (Package(name="numpy", version="2.4.6", record="a" * 64), Package(name="own", version="1"))


class Kept:
    """The results of an audit, and an archive of them."""

    def __init__(self, folder: Path, *weights: str) -> None:
        self.folder, self.out, self.zip = folder, folder / "out", folder / "audit.zip"
        asked = settings(folder, runs=len(weights))
        (asked.cwd / "train.py").write_text("import torch\n")
        launcher = FakeLauncher(*(run(training(one)) for one in weights))
        self.report: Audit = Auditor(asked, launcher).run()
        store.save(self.out, self.report)
        with pytest.MonkeyPatch.context() as patch:  # no process is started
            patch.setattr(materials, "packages_of", lambda python: ("3.11.7", PACKAGES, ""))
            patch.setattr(materials, "git_state", lambda cwd, results: (GIT, DIFF, ""))
            used, diff = materials.collect(self.report, self.out, asked.cwd)
        materials.save(self.out, used, diff)
        pack.of_results(self.zip, self.report, self.out, asked.cwd)
        self.used, self.cwd = used, asked.cwd
        self._checks = 0

    def check(self, path: Path | None = None) -> Verified:
        """Check an archive, by default the one that was written."""
        self._checks += 1
        return verify(path or self.zip, self.folder / f"unpacked-{self._checks}")

    def members(self) -> dict[str, bytes]:
        """Return what the archive holds."""
        self._checks += 1
        folder = self.folder / f"unpacked-{self._checks}"
        names, _ = archive.unpack(self.zip, folder)
        return {name: (folder / name).read_bytes() for name in names}

    def packed(self, contents: Mapping[str, bytes]) -> Path:
        """Return a new archive of these members, written as detaudit writes them."""
        self._checks += 1
        path = self.folder / f"edited-{self._checks}.zip"
        sources: dict[str, Source] = dict(contents)
        archive.write(path, sources, {name: archive.measured(one) for name, one in sources.items()})
        return path

    def forged(self, report: Audit) -> Path:
        """Return an archive of another report with hashes, a page and a statement that fit it."""
        contents = self.members()
        contents["results/audit.json"] = to_json(report)
        contents[pack.HTML] = pack.html(report, self.out)
        del contents[NAME]
        known = {name: archive.measured(one) for name, one in contents.items()}
        contents[NAME] = statement(report, self.used, known)
        return self.packed(contents)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """Return an audit of three runs that match."""
    return Kept(tmp_path, "same", "same", "same")


@pytest.fixture(scope="module")
def differing(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """Return an audit of three runs of which one differs; no test may change it."""
    return Kept(tmp_path_factory.mktemp("differing"), "same", "other", "same")


@pytest.fixture(scope="module")
def matching(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """Return an audit of three runs that match; no test may change it."""
    return Kept(tmp_path_factory.mktemp("matching"), "same", "same", "same")
