"""The JSON schema of recipe files, for editors and for programs that write recipes."""

import json
from typing import Any

import msgspec

from detaudit.recipe.recipes import RecipeFile

FILE = "recipe.schema.json"
"""Its name in configs/."""


def recipe_schema() -> dict[str, Any]:
    """Return the schema of RecipeFile, without references."""
    _, components = msgspec.json.schema_components([RecipeFile])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **components["RecipeFile"],
        "title": "detaudit recipe",
        "description": "A named set of flags, with a seed.",
    }


def text() -> str:
    """Return the text of the schema file."""
    return json.dumps(recipe_schema(), indent=2) + "\n"
