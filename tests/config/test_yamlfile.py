"""Files that a loader of YAML or TOML stumbles over end in an error for the user."""

from pathlib import Path

import pytest

from detaudit.config import project, yamlfile
from detaudit.config.flags import load_catalogue
from detaudit.config.recipes import load_recipe
from detaudit.errors import ConfigError, DetauditError, UnknownNameError

ALIASES = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "- " * 100_000,
        ALIASES,
        "name: 2020-13-45",
        "seed: 0x_",
        "seed: " + "9" * 5000,
        "name: !!timestamp x",
        "name: !!bool x",
        "name: !!int x",
        r'"\ud800": 1',
        "name: x\nflags: [&a [*a]]",
        "#" * (yamlfile.MOST_BYTES + 1),
    ],
)
def test_any_recipe_is_read_or_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"r\.yaml"):
        load_recipe(str(file), load_catalogue())


def test_a_recipe_with_an_impossible_name_does_not_exist(tmp_path: Path) -> None:
    for name in ("a" * 300 + ".yaml", "a\0.yaml"):
        with pytest.raises(UnknownNameError):
            load_recipe(name, load_catalogue())


@pytest.mark.parametrize("name", ["a[\u00b2]", "a.b[0]", "\u0661"])
def test_a_place_is_found_below_any_name(name: str, tmp_path: Path) -> None:
    file = tmp_path / "detaudit.yaml"
    file.write_text(f'audits: {{"{name}": {{command: [], runs: 0}}}}')
    with pytest.raises(ConfigError, match=r"detaudit\.yaml:1:"):
        project.read(file)


@pytest.mark.parametrize("text", ["tool = 1", "tool.detaudit = 1", "a = " + "[" * 5000, "a = " + "9" * 5000])
def test_any_pyproject_is_read_or_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(DetauditError):
        project.read(project.find(tmp_path))
