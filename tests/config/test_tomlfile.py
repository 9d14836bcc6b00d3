import pytest

from detaudit.config import project

KEYS = ("tool", "detaudit", "runs")

TABLES = "[tool.other]\nruns = 0\n"


@pytest.mark.parametrize(
    ("text", "place", "key"),
    [
        (TABLES + "[tool.detaudit]\n\n# runs = 1\n  runs = 0\n", (6, 10), (6, 3)),
        (TABLES + "[tool.detaudit]\n'runs'=0\nlast = 1\n", (4, 8), (4, 1)),
        (TABLES + "[tool]\ndetaudit.runs = 0\n", (4, 17), (4, 10)),
        (TABLES + "[tool]\ndetaudit = { last = 1, runs = 0 }\n", (4, 31), (4, 24)),
        (TABLES + '[tool.detaudit]\ntext = """\nruns = 1\n"""\nruns = 0\n', (7, 8), (7, 1)),
        (TABLES + "[tool.detaudit]\nruns = [\n  1,\n  # one\n  2,\n]\nlast = 1\n", (4, 8), (4, 1)),
        (TABLES + "[tool.detaudit.runs]\nlast = 1\n", (3, 1), (3, 1)),
        (TABLES + " [tool.detaudit]\nother = {runs = 1}\n [tool.detaudit.runs.runs]\n", (5, 2), (5, 2)),
        ("[tool]\ndetaudit = {other = {runs = 1}, runs = 0}", (2, 1), (2, 1)),
        ('[tool.detaudit]\n"r\\u0075ns" = 0', (2, 1), (2, 1)),
    ],
)
def test_a_value_is_found_however_it_is_written(text: str, place: tuple[int, int], key: tuple[int, int]) -> None:
    assert project.position_of(text, KEYS) == place
    assert project.position_of(text, KEYS, of_key=True) == key


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[tool.detaudit",
        "[tool]\ndetaudit = 1",
        "[tool.detaudit]\nruns = [" + "\n1," * project.MOST_TRIES + "]",
        "#" * project.MOST_CHARACTERS + "\n[tool.detaudit]\nruns = 1",
    ],
)
def test_what_is_not_there_or_too_long_has_no_place(text: str) -> None:
    assert project.position_of(text, KEYS) is None
