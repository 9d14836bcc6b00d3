"""The HTML report: one file that loads nothing, and in which nothing that a script wrote is more than text."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import msgspec
import pytest

from detaudit.model import Audit, Excerpt, GateName, Group, RankRecord, Report, Run, Status
from detaudit.model.figures import Curve, Figures, GroupFigures, Ladder, LadderRow, Losses, NoFigure, Point
from detaudit.model.stage import Stage
from detaudit.report import html
from detaudit.report.html import captions as captions
from detaudit.report.html import figures
from tests.report.checks import CHECK
from tests.report.test_reporters import ALL, AUDITS

GATES = {*GateName}
HOSTILE = "</script></style><script>alert(1)</script><img src=x onerror=alert(1)>\"'\x1b[31m\u202e"


class Elements(HTMLParser):
    """Collects the elements of a page, each with its attributes, and checks that they are closed in order."""

    VOID = {"meta", "br", "img", "link", "input"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile(value: object, key: str = "") -> object:
    """Return a report in which each free text is hostile."""
    if isinstance(value, dict):
        return {name: hostile(one, name) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [hostile(one, key) for one in value]
    free = {"command", "stderr_tail", "file", "call", "title", "by_hand", "name", "code", "message", "lines", "site"}
    return value + HOSTILE if isinstance(value, str) and key in free and value not in GATES else value


@pytest.mark.parametrize("name", ALL)
def test_a_page_is_well_formed_and_has_one_heading(name: str) -> None:
    found = Elements(html.render(ALL[name]))
    assert [tag for tag, _ in found.found].count("h1") == 1
    ids = [attributes["id"] for _, attributes in found.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for tag, attributes in found.found if tag == "a"]
    assert links
    assert all(link and link.startswith("#") and link[1:] in ids for link in links)


@pytest.mark.parametrize("name", ALL)
def test_a_page_loads_nothing_and_its_policy_names_its_style_and_its_script(name: str) -> None:
    text = html.render(ALL[name])
    found = Elements(text)
    assert not {"link", "img", "iframe", "object", "base", "form"} & {tag for tag, _ in found.found}
    assert not [a for _, attributes in found.found for a in attributes if a in ("src", "style") or a.startswith("on")]
    (policy,) = (a["content"] for _, a in found.found if a.get("http-equiv") == "Content-Security-Policy")
    for tag in ("style", "script"):
        (inside,) = re.findall(rf"(?s)<{tag}>(.*?)</{tag}>", text)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in (policy or "")
    assert (policy or "").startswith("default-src 'none'")


@pytest.mark.parametrize("name", ALL)
def test_hostile_texts_stay_text(name: str) -> None:
    report = msgspec.convert(hostile(msgspec.to_builtins(ALL[name])), Report)
    found = Elements(html.render(report))
    assert [tag for tag, _ in found.found].count("script") == 1
    assert "img" not in {tag for tag, _ in found.found}
    assert "alert(1)" in found.text
    assert not {"\x1b", "\u202e"} & set(found.text)


def drawn(group: Group) -> Figures:
    runs = tuple(run.id for run in group.runs)
    one = Point(first=1.0, least=1.0, greatest=1.0, last=1.0)
    losses = Losses(
        rank=0, bins=((1, 1), (2, 2)), curves=(Curve(runs=runs, points=(one, Point(broken=True))),), first=None
    )
    rows = (LadderRow(stage=Stage.FORWARD, counts=(1, 2)), LadderRow(stage=Stage.UPDATE, counts=(None, 2)))
    ladder = Ladder(runs=runs, columns=((1, 1), (2, 90)), rows=rows, first=((Stage.FORWARD, 1),))
    return Figures(groups=(GroupFigures(ladder=ladder, losses=losses),) * 2)


def test_figures_are_drawn_with_their_values_in_words() -> None:
    audit = AUDITS["nondeterministic"]
    text = html.render(audit, drawn(audit.groups[0]))
    found = Elements(text)
    assert "steps 2 to 90, update: 2 different digests" in [a.get("data-tip") for _, a in found.found]
    (values, *_) = (a["data-values"] for _, a in found.found if a.get("data-values"))
    assert msgspec.json.decode(values or "") == {
        "steps": ["step 1", "step 2"],
        "x": [0, 1],
        "series": [{"name": "A runs 1, 2", "k": "k-A", "v": ["1", "NaN or infinite"]}],
    }


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float32", "the losses are of type float32, in which 1 ulp is up to 1.19e-07 of a value"),
        ("bfloat16", "the losses are of type bfloat16, in which 1 ulp is up to 0.00781 of a value"),
        ("int64", "the losses are of type int64"),
        (None, ""),
    ],
)
def test_the_type_of_the_losses_is_said_below_them(dtype: str | None, expected: str) -> None:
    (one, _) = drawn(AUDITS["nondeterministic"].groups[0]).groups
    assert one.losses is not None
    found = msgspec.structs.replace(one.losses, dtype=dtype)
    assert captions.loss_type(found) == expected
    text = html.render(AUDITS["nondeterministic"], Figures(groups=(GroupFigures(losses=found), GroupFigures())))
    assert text.count("The losses are of type") == (dtype is not None)
    assert expected[1:] in text


@pytest.mark.parametrize("why", NoFigure)
def test_a_figure_that_is_missing_is_a_line_with_the_reason(why: NoFigure) -> None:
    audit = AUDITS["nondeterministic"]
    found = Elements(html.render(audit, Figures(groups=(GroupFigures(missing=why),) * 2)))
    said = {
        NoFigure.LOGS_GONE: "event logs",
        NoFigure.LOGS_NOT_FETCHED: "not fetched",
        NoFigure.NO_LOSSES: "--loss-pattern",
    }
    assert said[why] in found.text


def many(runs: int, results: int) -> Audit:
    """Return an audit of runs of which the first has the most frequent result."""
    audit = AUDITS["nondeterministic"]
    group = audit.groups[0]
    made = []
    for number in range(1, runs + 1):
        result = number if number <= results else 1
        rank = RankRecord(
            rank=0, framework="torch", steps=9, sum_of_weights=1 + result / 1e9, final_loss=0.5, digest=f"d{result}"
        )
        made.append(msgspec.structs.replace(group.runs[0], id=number, ranks=(rank,), result=result))
    group = msgspec.structs.replace(group, runs=tuple(made), distinct_results=results)
    return msgspec.structs.replace(audit, groups=(group,))


def test_of_many_runs_each_result_has_a_row_the_most_frequent_first() -> None:
    text = html.render(many(runs=40, results=3))
    found = Elements(text)
    rows = [a["data-run"] for tag, a in found.found if "data-run" in a]
    assert len(rows) == 3
    assert "38 of 40 runs (95%)" in found.text
    assert "Each run" in found.text


def test_results_from_the_eighth_on_have_no_letter_of_their_own() -> None:
    found = Elements(html.render(many(runs=12, results=12)))
    kinds = [(a["data-run"] or "").partition("/")[2] for _, a in found.found if "data-run" in a]
    assert kinds == [f"k-{letter}" for letter in "ABCDEFGXXXXX"]


def test_the_digits_that_all_runs_share_are_apart_from_the_others() -> None:
    text = html.render(many(runs=2, results=2))
    assert '<span class="eq">1.000000001</span>' in text


def test_the_code_around_a_source_is_shown_with_its_line() -> None:
    audit = AUDITS["nondeterministic"]
    excerpt = Excerpt(file="train.py", line=7, first=6, lines=("a = 1", "b = <2>"), digest="d")
    groups = (msgspec.structs.replace(audit.groups[0], excerpts=(excerpt,)), *audit.groups[1:])
    text = html.render(msgspec.structs.replace(audit, groups=groups))
    assert '<div class="ln hit"><i>7</i><span>b = &lt;2&gt;</span></div>' in text
    assert '<div class="ln"><i>6</i><span>a = 1</span></div>' in text


def test_a_report_of_an_older_version_has_letters_by_digest() -> None:
    audit = many(runs=4, results=2)
    runs = tuple(msgspec.structs.replace(run, result=None) for run in audit.groups[0].runs)
    groups = (msgspec.structs.replace(audit.groups[0], runs=runs),)
    found = Elements(html.render(msgspec.structs.replace(audit, groups=groups)))
    kinds = [(a["data-run"] or "").partition("/")[2] for _, a in found.found if "data-run" in a]
    assert kinds == ["k-A", "k-B", "k-A", "k-A"]


def test_letters_go_to_the_first_run_and_then_to_the_most_frequent_results() -> None:
    group = many(runs=6, results=1).groups[0]
    runs = [
        msgspec.structs.replace(run, result=number) for run, number in zip(group.runs, (1, 2, 3, 3, 3, 2), strict=True)
    ]
    assert figures.letters(msgspec.structs.replace(group, runs=tuple(runs))) == {1: "A", 3: "B", 2: "C"}


@pytest.mark.parametrize(
    ("counts", "first", "expected"),
    [
        ((1, None), (), "both runs match in each stage and step that all of them recorded"),
        ((1, 2), (), "runs differ in update"),
        ((1, 2), ((Stage.UPDATE, 2),), "runs first differ at step 2 (update)"),
    ],
)
def test_a_ladder_claims_only_what_it_shows(
    counts: tuple[int | None, ...], first: tuple[tuple[Stage, int], ...], expected: str
) -> None:
    rows = (LadderRow(stage=Stage.UPDATE, counts=counts),)
    assert captions.ladder(Ladder(runs=(1, 2), columns=((1, 1), (2, 2)), rows=rows, first=first)) == expected


def test_a_run_that_was_ended_before_others_has_no_results() -> None:
    rank = RankRecord(rank=0, framework="torch", steps=4, sum_of_weights=None, final_loss=0.5, digest="aa")
    whole = [Run(id=number, status=Status.OK, exit_code=0, wall_s=1.0, steps=9, ranks=(rank,)) for number in (2, 3)]
    short = Run(id=1, status=Status.ENDED, exit_code=None, wall_s=1.0, steps=4, ranks=(rank,), through=4)
    group = msgspec.structs.replace(AUDITS["nondeterministic"].groups[0], runs=(short, *whole), through=None)
    first, second, _ = figures.rows(group)
    assert (first.result, first.digest, first.loss.own, first.where) == (None, "-", "-", "ended")
    assert (second.letter, second.loss.own) == ("A", "0.5")


def test_a_page_has_the_versions_of_frameworks_and_packages_and_a_command_that_a_shell_takes() -> None:
    packages: dict[str, object] = {"python": "3.11.7", "frameworks": {"torch": "2.13.0"}, "packages": {}, "gpus": []}
    audit = AUDITS["nondeterministic"]
    command = ("detaudit", "run", "train.py", "--loss-pattern", r"loss (\S+)")
    found = Elements(html.render(msgspec.structs.replace(audit, environment=packages, command=command)))
    assert "Frameworks" in found.text
    assert "torch 2.13.0" in found.text
    assert "Packages" not in found.text
    assert "GPUs" not in found.text
    assert r"detaudit run train.py --loss-pattern 'loss (\S+)'" in found.text


def test_a_check_has_the_code_around_what_differs_and_folds_what_passed() -> None:
    excerpt = Excerpt(file="train.py", line=7, first=6, lines=("a = 1", "random.seed()"), digest="d")
    digits, race = CHECK.audits
    group = msgspec.structs.replace(race.audit.groups[0], excerpts=(excerpt,))
    race = msgspec.structs.replace(race, audit=msgspec.structs.replace(race.audit, groups=(group,)))
    passed = msgspec.structs.replace(digits, name="fine", gates=digits.gates[:1])
    text = html.render(msgspec.structs.replace(CHECK, audits=(digits, race, passed)))
    page = Elements(text)
    assert '<div class="ln hit"><i>7</i><span>random.seed()</span></div>' in text
    assert text.count("<summary>digits, repeatable: passed</summary>") == 1
    assert "<summary><h2>fine: Runs</h2></summary>" in text
    assert "<h2>digits: Runs</h2>\n" in text  # one of its gates failed
    ids = [attributes.get("id") for tag, attributes in page.found if tag == "section"]
    links = [attributes["href"] for tag, attributes in page.found if tag == "a" and attributes.get("href") != "#report"]
    assert links == ["#lock", "#runs-0", "#runs-1", "#runs-2", "#environment"]  # one for each audit
    assert {link[1:] for link in links if link} <= {*ids}


def test_a_comparison_has_the_environment_of_both_sides() -> None:
    text = html.render(ALL["compared-different"])
    assert "<dt>python</dt><dd>3.11.7</dd><dt>torch</dt><dd>A: 2.12.0; B: 2.13.0</dd>" in text


def test_figures_of_runs_that_match_do_not_ask_where_they_differ() -> None:
    audit = AUDITS["nondeterministic"]
    text = html.render(audit, drawn(audit.groups[0]))
    assert "Where runs first differ" in text
    alone = msgspec.structs.replace(audit, verdict=audit.groups[1].verdict, groups=audit.groups[1:])
    text = html.render(alone, drawn(alone.groups[0]))
    assert "Where runs first differ" not in text
    assert "<h2>Loss</h2>" in text
