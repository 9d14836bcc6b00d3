"""What varies from run to run, and a run that is given its values."""

import os
from collections.abc import Collection
from dataclasses import dataclass, replace

from detaudit import wire
from detaudit.launch import RunSpec
from detaudit.recipe.recipes import Recipe
from detaudit.recipe.variations import Variation

ROOM = 4096
"""Bytes for the variables of all variations together; what they leave of it is filled."""


@dataclass(frozen=True)
class Varying:
    """The variations of a group of runs: those that move, and those that stay at their control's value.

    ``left_out`` says of those that were asked for and do neither why not.
    """

    moving: tuple[Variation, ...] = ()
    still: tuple[Variation, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()

    def under(self, recipe: Recipe, moving: Collection[str] | None = None) -> "Varying":
        """Return the same for a recipe, of which only those named in ``moving`` move; all where it is None.

        What the recipe holds still is left to it.
        """
        held = {flag.id for flag in recipe.flags}
        asked = (*self.moving, *self.still)
        free = [one for one in asked if held.isdisjoint(one.flags)]
        reason = f"the recipe {recipe.name} holds it still"
        return Varying(
            tuple(one for one in free if moving is None or one.id in moving),
            tuple(one for one in free if moving is not None and one.id not in moving),
            (*self.left_out, *((one.id, reason) for one in asked if one not in free)),
        )

    @property
    def moves(self) -> frozenset[str]:
        """What reads otherwise in each run because of it; see Variation.moves."""
        return frozenset[str]().union(*(one.moves for one in self.moving))

    def launcher(self, name: str) -> bool:
        """Whether a launcher change of this name moves."""
        return any(one.launcher == name for one in self.moving)

    @property
    def folders(self) -> tuple[str, ...]:
        """The names of the folders that the runs work in one after another, ``()`` where that does not move."""
        found = [one.value.varied for one in self.moving if one.launcher == "folder" and one.value is not None]
        return found[0] if found else ()

    def applied(self, spec: RunSpec, run: int) -> RunSpec:
        """Return a run with the values of the run with this number, from 1, whose values are the control's."""
        if not self.moving and not self.still:
            return spec
        before = _size(spec.env)
        for variation in self.still:
            spec = _given(spec, variation, 0)
        for variation in self.moving:
            spec = _given(spec, variation, run - 1)
        room = before + ROOM - _size(spec.env)
        return replace(spec, env={**spec.env, wire.ENV_PAD: "x" * max(0, room)})


NOTHING_VARIES = Varying()


def _given(spec: RunSpec, variation: Variation, number: int) -> RunSpec:
    orders = [*filter(None, [spec.env[wire.ENV_FLAGS]]), *variation.orders(number)]
    spec = replace(spec, env={**spec.env, **variation.environment(number), wire.ENV_FLAGS: "\n".join(orders)})
    if variation.launcher == "addresses":
        return replace(spec, no_aslr=number == 0)
    if variation.launcher == "load":
        return replace(spec, load=int(variation.at(number)) * (os.cpu_count() or 1))
    return spec


def _size(env: dict[str, str]) -> int:
    return sum(len(os.fsencode(name)) + len(os.fsencode(value)) + 2 for name, value in env.items())
