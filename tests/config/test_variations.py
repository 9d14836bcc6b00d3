"""The table of variations: its rows are consistent, invalid ones are reported, and each run has its values."""

import json
from pathlib import Path

import pytest

from detaudit.config.variations import Variation, load_variations, select
from detaudit.errors import ConfigError, UnknownNameError
from detaudit.recorder.patches import VARIATIONS


@pytest.fixture(scope="module")
def table() -> tuple[Variation, ...]:
    return load_variations()


def test_every_variation_differs_from_its_control(table: tuple[Variation, ...]) -> None:
    for row in table:
        assert row.describe(1) != row.describe(0), row.id
        assert row.source
        assert row.fix
        assert set(row.patch.values()) <= set(VARIATIONS)


def test_the_value_of_each_run(table: tuple[Variation, ...]) -> None:
    by_id = {row.id: row for row in table}
    assert [by_id["hash-seed"].environment(n)["PYTHONHASHSEED"] for n in range(3)] == ["0", "1", "2"]
    assert [by_id["memory-fill"].environment(n)["MALLOC_PERTURB_"] for n in (0, 1, 4, 5)] == [
        "255",
        "192",
        "165",
        "192",
    ]
    (order,) = by_id["listing-order"].orders(7)
    module, text = order.split("\t")
    assert module == "os"
    assert json.loads(text) == {"id": "vary:listing-order", "vary": "order-listings", "number": 7}
    assert by_id["working-directory"].describe(0) == "unchanged"


def test_all_leaves_out_what_is_expected_to_change_results(table: tuple[Variation, ...]) -> None:
    ids = [row.id for row in select(table, ["all"])]
    assert "hash-seed" in ids
    assert "threads" not in ids
    assert "instruction-set" not in ids
    assert [row.id for row in select(table, ["threads", "hash-seed"])] == ["hash-seed", "threads"]
    assert "threads" in [row.id for row in select(table, ["all", "threads"])]


def test_an_unknown_name_gets_the_nearest_as_a_hint(table: tuple[Variation, ...]) -> None:
    with pytest.raises(UnknownNameError) as caught:
        select(table, ["hashseed"])
    assert "hash-seed" in caught.value.hint


ROW = "- {id: a, title: t, cause: hash, fix: c, source: s, "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ROW + 'env: {A: {control: "0"}}}', "varied"),
        (ROW + "env: {A: {control: x, varied: []}}}", "has no values to vary"),
        (ROW + "launcher: load}", "needs either"),
        (ROW + "launcher: fly, value: {control: x, varied: [y]}}", "fly"),
        (ROW + "env: {A: {control: x, varied: [y]}}}\n" + ROW + "env: {A: {control: x, varied: [y]}}}", "duplicate"),
        (ROW + "env: {A: {control: x, varied: [y]}}, flags: [no-such-flag]}", "no-such-flag"),
    ],
)
def test_an_invalid_table_is_reported(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "variations.yaml"
    path.write_text(text + "\n")
    with pytest.raises((ConfigError, UnknownNameError)) as caught:
        load_variations(path)
    assert message in caught.value.message
