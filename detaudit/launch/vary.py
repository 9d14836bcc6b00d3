"""The values of variations by run, and which of them this system offers."""

import contextlib
import locale
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from detaudit import wire
from detaudit.config.recipes import Recipe
from detaudit.config.variations import Variation
from detaudit.launch import RunSpec, refusals
from detaudit.model import NotVaried
from detaudit.model.sources import (
    AddressesRandom,
    NeedsIsolate,
    NeedsMachine,
    NoAvx2,
    NoGlibc,
    NoSecondLocale,
    PinnedByRecipe,
)

# Apply variations to runs: which of them vary or are pinned, and the values of each run.


ROOM = 4096
"""Bytes reserved for the variables of all variations. The rest is padding: every environment has the same size."""


@dataclass(frozen=True)
class Varying:
    """The variations of a group of runs: those that vary, and those that are pinned to their control value.

    ``not_varied`` gives the reason for each requested variation that is neither.
    """

    varying: tuple[Variation, ...] = ()
    pinned: tuple[Variation, ...] = ()
    not_varied: tuple[tuple[str, NotVaried], ...] = ()

    def under(self, recipe: Recipe, varied: Collection[str] | None = None) -> "Varying":
        """Return the variations of runs with a recipe; those not in ``varied`` are pinned, none if it is None.

        A variation that a flag of the recipe pins is left to the recipe.
        """
        set_flags = {flag.id for flag in recipe.flags}
        requested = (*self.varying, *self.pinned)
        free = [one for one in requested if set_flags.isdisjoint(one.flags)]
        reason = PinnedByRecipe(recipe=recipe.name)
        return Varying(
            tuple(one for one in free if varied is None or one.id in varied),
            tuple(one for one in free if varied is not None and one.id not in varied),
            (*self.not_varied, *((one.id, reason) for one in requested if one not in free)),
        )

    @property
    def varied_settings(self) -> frozenset[str]:
        """The variables and library settings that differ between runs because of it."""
        return frozenset[str]().union(*(one.varied_settings for one in self.varying))

    def launcher(self, name: str) -> bool:
        """Return whether the launcher change of this name varies."""
        return any(one.launcher == name for one in self.varying)

    @property
    def folders(self) -> tuple[str, ...]:
        """The names of the working folders of runs 2, 3, …, in turn; ``()`` if the working folder does not vary."""
        varied_folders = [
            one.value.varied for one in self.varying if one.launcher == "folder" and one.value is not None
        ]
        return varied_folders[0] if varied_folders else ()

    def apply(self, spec: RunSpec, run: int) -> RunSpec:
        """Return ``spec`` with the values of run number ``run``; run 1 has the control values."""
        if not self.varying and not self.pinned:
            return spec
        before = _size(spec.env)
        for variation in self.pinned:
            spec = _with_value(spec, variation, 0)
        for variation in self.varying:
            spec = _with_value(spec, variation, run - 1)
        room = before + ROOM - _size(spec.env)
        return replace(spec, env={**spec.env, wire.ENV_PAD: "x" * max(0, room)})


NOTHING_VARIES = Varying()


def _with_value(spec: RunSpec, variation: Variation, number: int) -> RunSpec:
    orders = [*filter(None, [spec.env[wire.ENV_FLAGS]]), *variation.orders(number)]
    spec = replace(spec, env={**spec.env, **variation.environment(number), wire.ENV_FLAGS: "\n".join(orders)})
    if variation.launcher == "addresses":  # which also move when bytecode that the first run wrote is read
        return replace(spec, no_aslr=number == 0, env={**spec.env, "PYTHONDONTWRITEBYTECODE": "1"})
    if variation.launcher == "load":
        return replace(spec, load=int(variation.at(number)) * (os.cpu_count() or 1))
    return spec


def _size(env: dict[str, str]) -> int:
    return sum(len(os.fsencode(name)) + len(os.fsencode(value)) + 2 for name, value in env.items())


# Find out which variations are possible on this system.


CPU = Path("/proc/cpuinfo")


def offered(variations: Iterable[Variation], *, isolate: bool, alone: bool = True) -> Varying:
    """Return which of these variations can vary here, and why the others cannot; ``alone``: no two runs go at once."""
    varying, not_varied = [], []
    for variation in variations:
        candidate = _with_installed_locales(variation) if variation.needs == "locale" else variation
        reason = _refusal(candidate, isolate, alone)
        if reason is not None:
            not_varied.append((variation.id, reason))
        else:
            varying.append(candidate)
    return Varying(tuple(varying), (), tuple(not_varied))


def _refusal(variation: Variation, isolate: bool, alone: bool) -> NotVaried | None:
    if variation.needs == "aslr":
        refusal = refusals.aslr_refusal()
        return AddressesRandom(detail=refusal) if refusal else None
    if variation.needs == "glibc" and not _has_glibc():
        return NoGlibc()
    if variation.needs == "avx2" and not _has_avx2():
        return NoAvx2()
    if variation.needs == "locale" and not all(values.varied for values in variation.env.values()):
        return NoSecondLocale()
    if variation.needs == "isolate" and not isolate:
        return NeedsIsolate()
    if variation.launcher == "load" and not alone:
        return NeedsMachine()
    return None


def _has_glibc() -> bool:
    with contextlib.suppress(ValueError, OSError):
        return bool(os.confstr("CS_GNU_LIBC_VERSION"))
    return False


def _has_avx2() -> bool:
    try:
        return " avx2 " in CPU.read_text()
    except OSError:
        return False


def _with_installed_locales(variation: Variation) -> Variation:
    env = dict(variation.env)
    values = env["LC_ALL"]
    env["LC_ALL"] = msgspec.structs.replace(values, varied=tuple(filter(_is_installed, values.varied)))
    return msgspec.structs.replace(variation, env=env)


def _is_installed(name: str) -> bool:
    before = locale.setlocale(locale.LC_COLLATE)
    try:
        locale.setlocale(locale.LC_COLLATE, name)
    except locale.Error:
        return False
    finally:
        locale.setlocale(locale.LC_COLLATE, before)
    return True
