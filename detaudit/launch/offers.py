"""Find out which variations are possible on this system."""

import contextlib
import locale
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from detaudit.launch import aslr
from detaudit.launch.vary import Varying
from detaudit.model import NotVaried
from detaudit.model.applicability import AddressesRandom, NeedsIsolate, NeedsMachine, NoAvx2, NoGlibc, NoSecondLocale
from detaudit.recipe.variations import Variation

CPU = Path("/proc/cpuinfo")


def offered(variations: Iterable[Variation], *, isolate: bool, alone: bool = True) -> Varying:
    """Return which of these variations can vary here, and why the others cannot; ``alone``: no two runs go at once."""
    varying, not_varied = [], []
    for variation in variations:
        found = _with_installed_locales(variation) if variation.needs == "locale" else variation
        reason = _refusal(found, isolate, alone)
        if reason is not None:
            not_varied.append((variation.id, reason))
        else:
            varying.append(found)
    return Varying(tuple(varying), (), tuple(not_varied))


def _refusal(variation: Variation, isolate: bool, alone: bool) -> NotVaried | None:
    if variation.needs == "aslr":
        refusal = aslr.refusal()
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
