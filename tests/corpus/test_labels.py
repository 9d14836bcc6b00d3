"""Every label of the corpus follows from what was measured of the script, as its text is now."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from detaudit.config.flags import load_catalogue
from tests.corpus import corpus_table, measure

LABELS = yaml.safe_load((measure.HERE / "labels.yaml").read_text())
MEASURED = yaml.safe_load(measure.MEASURED.read_text())


def letter(found: dict[str, int]) -> str:
    if found.get("failed") == found["runs"]:
        return "?"
    assert not found.get("failed"), "it fails in some runs only: no label says that"
    return "N" if found["distinct"] > 1 else "D"


def test_forty_scripts_a_third_of_them_controls() -> None:
    controls = [name for name, label in LABELS.items() if label["cause"] == "control"]
    assert len(LABELS) >= 40
    assert len(controls) * 3 >= len(LABELS)
    assert {path.stem for path in measure.SCRIPTS.glob("*.py")} == {*LABELS, "final"}


@pytest.mark.parametrize("name", LABELS)
def test_a_label_follows_from_its_measurement(name: str) -> None:
    label, found = LABELS[name], MEASURED.get(name, {})
    asked = "it is not measured as it is now: make measure-corpus"
    assert found.get("script") == measure.fingerprint(measure.SCRIPTS / f"{name}.py"), asked
    assert {*measure.wanted(label)} <= {*found}, asked
    for condition in measure.wanted(label):
        assert found[condition]["runs"] >= (20 if condition == measure.BARE else 10)
    assert letter(found["bare"]) == label["none"]
    rare = letter(found["bare"]) == "N" and corpus_table.differing_share(found["bare"]) < 1 / 3
    assert label.get("rare", False) == rare
    # Ten runs with a rare difference may match.
    assert letter(found["seeds"]) == label["seeds"] or (rare and label["seeds"] == "N")
    assert expected_under_all(label, found) == label["all"] or (rare and label["all"] == "N")
    assert all(letter(found[fix]) == "D" for fix in label.get("fix", ()))


def test_an_answer_is_made_of_flags_and_belongs_to_a_script() -> None:
    answers = yaml.safe_load((measure.HERE / "answers.yaml").read_text())
    catalogue = load_catalogue()
    assert answers.keys() <= LABELS.keys()
    for name, sets in answers.items():
        for flags in sets:
            assert {flag.id for flag in catalogue.select(flags)} == set(flags)
            assert bool(flags) == (LABELS[name]["cause"] != "control")


def expected_under_all(label: dict[str, Any], found: dict[str, Any]) -> str:
    """Return the letter under all fixes: measured, or that of the one fix that is enough."""
    if "all" in found:
        return letter(found["all"])
    enough = {"seeds", *label.get("fix", ())} - measure.NOT_IN_ALL
    return "D" if any(letter(found[fix]) == "D" for fix in enough) else "N"


def test_the_measurement_knows_nothing_of_what_it_is_for() -> None:
    for path in [measure.HERE / "measure.py", measure.HERE / "with_fixes.py", *measure.SCRIPTS.glob("*.py")]:
        code = "\n".join(line for line in Path(path).read_text().splitlines() if line.startswith(("import", "from")))
        assert "detaudit" not in code.lower()
        assert "DETAUDIT" not in path.read_text()
