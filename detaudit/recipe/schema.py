"""The JSON schema of recipe files, for editors and for those who write recipes by program."""

import json
from typing import Any

import msgspec

from detaudit.recipe.recipes import RecipeFile

FILE = "recipe.schema.json"
"""Where it ships, below configs/."""


def recipe_schema() -> dict[str, Any]:
    """Return the schema of RecipeFile, in one piece."""
    _, components = msgspec.json.schema_components([RecipeFile])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **components["RecipeFile"],
        "title": "A recipe of detaudit",
        "description": "What is held still during the runs of a training: a named set of flags, with a seed.",
    }


def text() -> str:
    """Return the schema as it ships."""
    return json.dumps(recipe_schema(), indent=2) + "\n"
