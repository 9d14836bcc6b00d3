"""Charts: where things lie, and that no number in them is one that leaves the rest undrawn."""

import math
import re
from collections.abc import Sequence
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from detaudit.model import Number, TensorGrid
from detaudit.model.figures import Curve, Distance, Losses, Point
from detaudit.report.html import captions, charts

FINITE = st.floats(allow_nan=False, allow_infinity=False)
KINDS = {1: "k-A", 2: "k-B", 3: "k-C"}


def point(value: float) -> Point:
    return Point(first=value, least=value, greatest=value, last=value)


def of_values(*curves: Sequence[float | None], distances: list[float | None] | None = None) -> Losses:
    """Return curves of runs 1, 2, …; None stands for a loss that is not finite."""
    return Losses(
        rank=0,
        bins=tuple((step, step) for step in range(1, len(curves[0]) + 1)),
        curves=tuple(
            Curve(
                runs=(run,),
                points=tuple(point(value) if value is not None else Point(broken=True) for value in values),
                distances=tuple(Distance(greatest=one, equal=one == 0) for one in distances or ()) if run > 1 else (),
            )
            for run, values in enumerate(curves, 1)
        ),
        first=1 if len(curves) > 1 else None,
    )


def parsed(drawn: Markup) -> ElementTree.Element:
    return ElementTree.fromstring(drawn)


def test_text_and_attributes_are_escaped() -> None:
    drawn = charts.tag("text", '</text><script>"', x=1.5, aria_label='a"b<c', class_="ln")
    assert drawn == '<text x="1.5" aria-label="a&#34;b&lt;c" class="ln">&lt;/text&gt;&lt;script&gt;&#34;</text>'
    assert charts.tag("g", charts.tag("path", d="M0 0")) == '<g><path d="M0 0"></path></g>'


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_coordinate_that_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="coordinate"):
        charts.tag("line", x1=value)


@given(st.lists(FINITE, min_size=1))
def test_every_finite_value_lies_on_its_axis(values: list[float]) -> None:
    found = charts.fitting(values)
    places = [found.at(value) for value in values]
    assert all(0 <= place <= 1 for place in places)
    assert sorted(places) == [found.at(value) for value in sorted(values)]
    assert all(math.isfinite(value) for value, _ in found.ticks)


@given(st.lists(st.floats(min_value=5e-324, allow_infinity=False), min_size=1))
def test_every_positive_value_lies_on_a_logarithmic_axis(values: list[float]) -> None:
    found = charts.logarithmic(values)
    assert all(0 <= found.at(value) <= 1 for value in values)
    assert found.ticks


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 2.3, ["0", "1", "2"]),
        (0.42, 0.45, ["0.42", "0.43", "0.44", "0.45"]),
        (-1.0, 1.0, ["-1", "-0.5", "0", "0.5", "1"]),
    ],
)
def test_round_values_are_written_at_an_axis(low: float, high: float, expected: list[str]) -> None:
    assert [text for _, text in charts.Scale(low, high).ticks] == expected


def test_values_far_apart_are_on_a_logarithmic_axis_between_powers_of_ten() -> None:
    found = charts.fitting([0.003, 20.0])
    assert found.log
    assert (found.low, found.high) == pytest.approx((0.001, 100))
    assert [text for _, text in found.ticks] == ["10⁻²", "1", "10²"]
    assert not charts.fitting([-1.0, 5000.0]).log


def test_a_curve_is_broken_where_nothing_is_finite() -> None:
    drawn = charts.line([(0, 1), (10, 2), None, (30, 4), None, None, (50, 5), (60, 6)], "k-A")
    assert drawn == '<path class="ln k-A" d="M0 1L10 2M30 4h2M50 5L60 6"></path>'


def test_losses_are_drawn_from_left_to_right_and_from_high_to_low() -> None:
    root = parsed(charts.curves(of_values([2.0, 1.0, 0.0]), KINDS, ""))
    (path,) = (one for one in root.iter("path") if one.get("class") == "ln k-A")
    points = [tuple(map(float, pair.split())) for pair in re.split("[ML]", path.get("d") or "")[1:]]
    assert [x for x, _ in points] == [0, 500, 1000]
    assert [y for _, y in points] == [charts.TOP, (charts.TOP + charts.PLOT_HEIGHT) / 2, charts.PLOT_HEIGHT]


def test_a_loss_that_is_not_finite_is_on_a_rail_and_never_on_the_curve() -> None:
    root = parsed(charts.curves(of_values([2.0, None, None, 1.0]), KINDS, ""))
    rails = [one.get("d") for one in root.iter("path") if one.get("class") == "ln nan"]
    assert rails == ["M333.33 4.67L666.67 4.67"]
    assert "NaN or infinite" in "".join(root.itertext())
    assert charts.curves(of_values([None, None]), KINDS, "") == ""


def test_the_step_of_the_first_difference_is_marked() -> None:
    root = parsed(charts.curves(of_values([1.0, 2.0], [1.5, 2.5]), KINDS, "step 1 <b>"))
    (mark,) = (one for one in root.iter("line") if one.get("class") == "mk")
    assert mark.get("x1") == "0%"
    assert "step 1 <b>" in "".join(root.itertext())


def test_equal_losses_are_in_the_band_and_others_above_it() -> None:
    drawn = charts.distances(of_values([1.0] * 3, [1.0] * 3, distances=[0.0, 1e-7, 1e-3]), KINDS, "", "equal")
    far, same = (one.get("d") or "" for one in parsed(drawn).iter("path"))
    assert [float(y) for y in re.findall(r" ([\d.]+)", same)] == [charts.PLOT_HEIGHT - charts.BAND / 2]
    heights = [float(y) for y in re.findall(r" ([\d.]+)", far)]
    assert len(heights) == 2
    assert heights[1] < heights[0] <= charts.PLOT_HEIGHT - charts.BAND


def test_of_many_results_the_rest_share_an_envelope() -> None:
    found = of_values(*([float(run), 1.0] for run in range(1, 11)))
    root = parsed(charts.curves(found, dict.fromkeys(range(1, 11), "k-X"), ""))
    assert sum(one.get("class") == "ln k-X" for one in root.iter("path")) == 7
    (envelope,) = (one for one in root.iter("path") if one.get("class") == "env")
    assert (envelope.get("d") or "").count(" ") == 4


def test_dots_lie_on_a_strip_in_their_order() -> None:
    axis = charts.linear([1.0, 3.0])
    root = parsed(charts.strip([(1.0, "k-A"), (2.0, "k-B"), (3.0, "k-C")], axis, "none: 1, 2, 3"))
    places = [float((one.get("cx") or "").rstrip("%")) for one in root.iter("circle")]
    assert places == sorted(places)
    assert places[0] >= 0
    assert places[-1] <= 100
    assert root.get("aria-label") == "none: 1, 2, 3"


def test_ulps_are_bars_by_their_number_and_what_is_equal_comes_first() -> None:
    root = parsed(charts.ulps([0, 10, 5, 0, 1], equal=20))
    assert [one.text for one in root.iter("text")] == [
        "equal", "20", "1 ulp", "10", "2 to 3 ulp", "5", "8 to 15 ulp", "1",
    ]  # fmt: skip
    widths = [float((one.get("width") or "").rstrip("%")) for one in root.iter("rect")]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.01)


def test_parts_of_a_tensor_are_darker_the_more_elements_differ() -> None:
    root = parsed(charts.where([0, 1, 50, 100], total=400))
    assert [one.get("class") for one in root.iter("rect")] == ["s0", "s1", "s3", "s5"]
    assert root.get("aria-label") == "elements differ in 3 of 4 equal parts of the tensor"


def test_rows_and_columns_of_a_tensor_are_darker_the_more_elements_differ() -> None:
    found = TensorGrid(rows=5, columns=8, counts=((0, 0, 0), (0, 6, 1), (3, 3, 2)))
    root = parsed(charts.matrix(found))
    assert root.get("aria-label") == (
        "elements of the tensor differ in 2 of 3 equal parts of its 5 rows and 3 of 3 equal parts of its 8 columns"
    )
    assert root[0].get("viewBox") == "0 0 3 3"
    paths = {one.get("class"): one.get("d") for one in root.iter("path")}
    # Of the second row of parts, each has 2 of the 5 rows, and 3, 3 and 2 of the 8 columns; of the third, 1 row.
    assert paths == {
        "s0": "M0 0h3v1h-3zM0 1h1v1h-1z",
        "s2": "M2 1h1v1h-1z",
        "s5": "M1 1h1v1h-1zM0 2h3v1h-3z",
    }


def test_a_large_tensor_is_few_bytes() -> None:
    """In the worst case no two parts beside each other have one shade."""
    found = TensorGrid(rows=64, columns=64, counts=tuple(tuple((x + y) % 2 for x in range(64)) for y in range(64)))
    assert len(charts.matrix(found)) < 64_000


def test_the_shades_of_a_tensor_have_a_key() -> None:
    root = parsed(charts.key())
    assert [one.get("class") for one in root.iter("rect")] == ["s0", "s1", "s2", "s3", "s4", "s5"]
    assert "".join(root.itertext()).startswith("none≤ 20%")


def test_an_alternative_has_an_empty_dot_and_each_cost_its_range() -> None:
    found = [charts.Cost("a", 1.5, (1.25, 1.75), 6), charts.Cost("b", 0.75, (0.5, 0.75), 3, needed=False)]
    root = parsed(charts.costs(found))
    assert root.get("aria-label") == "a 1.50x (1.25x to 1.75x, 6 pairs), b 0.75x (0.50x to 0.75x, 3 pairs)"
    assert [one.get("class") for one in root.iter("circle")] == ["dot", "dot empty"]
    assert "1.50x (1.25x to 1.75x, 6 pairs)" in list(root.itertext())
    ranges = [(one.get("x1"), one.get("x2")) for one in root.iter("line") if one.get("class") == "ln"]
    assert len(ranges) == 2
    assert all(least != most for least, most in ranges)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, "-"),
        ((None, 0.5), "-"),
        ((0.5, 0.5), "equal"),
        (("nan", "nan"), "equal"),
        ((0.5, "inf"), "NaN or infinite"),
        ((0.5, 0.25), "0.25"),
        ((1e308, -1e308), "inf"),
    ],
)
def test_how_far_losses_are_apart(found: tuple[Number, Number] | None, expected: str) -> None:
    assert captions.losses_apart(found) == expected
