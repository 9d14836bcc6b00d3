"""A dozen quick scripts of tests/results are judged as they are labeled; `make test-results` audits all of them."""

from typing import Any

import pytest
import yaml

from tests.results import audit, twice

QUICK = (
    "files_submission_csv",
    "files_metrics_json_equal",
    "files_in_home",
    "renamed_replace",
    "appended_csv",
    "formats_torch_legacy",
    "formats_zip_equal",
    "text_loss",
    "text_progress_bar",
    "text_set",
    "names_arrival_time",
    "left_cached_split",
    "left_pure_cache",
)
LABELS: dict[str, dict[str, Any]] = yaml.safe_load((twice.HERE / "labels.yaml").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_a_script_is_judged_as_labeled(name: str) -> None:
    label = LABELS[name]
    audited = audit.audit(twice.SCRIPTS / f"{name}.py", label, 2, "cold")
    assert audit.right(label, audited, "cold"), audited
