"""Lock files and audits that were damaged end in an error for the user."""

import json
from pathlib import Path

import msgspec
import pytest

from detaudit import baseline, store
from detaudit.errors import AuditNotFoundError, ConfigError
from detaudit.model import Trace, to_json
from detaudit.report import render
from tests.report.checks import REPORTS
from tests.report.test_reporters import AUDITS
from tests.report.traces import TRACES

DEEP, LONG = b"[" * 100_000, b"9" * 5000
TEXTS = [
    DEEP,
    LONG,
    b'{"schema_version":"2.0","audits":{},"more":' + DEEP,
    b'{"schema_version":"2.0","audits":{"a":"\xff"}}',
    b'{"schema_version":"2.0","audits":{"a":' + LONG + b"}}",
    b'{"schema_version":"2.0","audits":{"a":{"command":["\\ud800"]}}}',
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_damaged_file(text: bytes, tmp_path: Path) -> None:
    file = tmp_path / "detaudit.lock.json"
    file.write_bytes(text)
    with pytest.raises(ConfigError, match="is not a lock file"):
        baseline.read_lock(file)
    other = tmp_path / "audit.json"
    other.write_bytes(text.replace(b'"audits"', b'"groups"'))
    with pytest.raises(AuditNotFoundError, match="is not an audit"):
        store.load_report(other)
    with pytest.raises((AuditNotFoundError, ConfigError)):
        baseline.load(str(other))


def test_an_audit_whose_parts_do_not_fit_together_is_printed_or_refused(tmp_path: Path) -> None:
    file = tmp_path / "audit.json"
    nothing = TRACES["traced-nothing"]
    assert isinstance(nothing, Trace)
    assert "inconclusive: no run finished" in render(msgspec.structs.replace(nothing, groups=()), "markdown").replace(
        "*", ""
    )
    file.write_bytes(to_json(TRACES["traced-kernel"]).replace(b'"total": 32000', b'"total": 0'))
    with pytest.raises(AuditNotFoundError, match="is not an audit"):
        store.load_report(file)
    whole = json.loads(to_json(REPORTS["variations"]))
    for effect in whole["sensitive_to"]:
        effect["flags"] = [*effect["flags"], "torch-seed"]
    file.write_text(json.dumps(whole))
    assert "sensitive" in render(store.load_report(file), "table")


def test_a_rate_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "audit.json"
    whole = to_json(AUDITS["nondeterministic"])
    file.write_bytes(whole)
    assert store.load_report(file) == AUDITS["nondeterministic"]
    for bad in (b'"level": 1.0', b'"level": 1e308', b'"level": -1'):
        file.write_bytes(whole.replace(b'"level": 0.95', bad))
        with pytest.raises(AuditNotFoundError, match="is not an audit"):
            store.load_report(file)
