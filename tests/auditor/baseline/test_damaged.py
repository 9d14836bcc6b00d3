"""Lock files and audits that were damaged end in an error for the user."""

from pathlib import Path

import pytest

from detaudit.auditor import store
from detaudit.auditor.baseline import load, lockfile
from detaudit.errors import AuditNotFoundError, ConfigError
from detaudit.model import to_json
from tests.report.test_reporters import AUDITS

DEEP, LONG = b"[" * 100_000, b"9" * 5000
TEXTS = [
    DEEP,
    LONG,
    b'{"schema_version":"1.0","audits":{},"more":' + DEEP,
    b'{"schema_version":"1.0","audits":{"a":"\xff"}}',
    b'{"schema_version":"1.0","audits":{"a":' + LONG + b"}}",
    b'{"schema_version":"1.0","audits":{"a":{"command":["\\ud800"]}}}',
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_damaged_file(text: bytes, tmp_path: Path) -> None:
    file = tmp_path / "detaudit.lock.json"
    file.write_bytes(text)
    with pytest.raises(ConfigError, match="is not a lock file"):
        lockfile.read_lock(file)
    other = tmp_path / "audit.json"
    other.write_bytes(text.replace(b'"audits"', b'"groups"'))
    with pytest.raises(AuditNotFoundError, match="is not an audit"):
        store.load_report(other)
    with pytest.raises((AuditNotFoundError, ConfigError)):
        load.load(str(other))


def test_a_rate_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "audit.json"
    whole = to_json(AUDITS["nondeterministic"])
    file.write_bytes(whole)
    assert store.load_report(file) == AUDITS["nondeterministic"]
    for bad in (b'"level": 1.0', b'"level": 1e308', b'"level": -1'):
        file.write_bytes(whole.replace(b'"level": 0.95', bad))
        with pytest.raises(AuditNotFoundError, match="is not an audit"):
            store.load_report(file)
