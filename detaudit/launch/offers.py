"""Which variations this system offers."""

import contextlib
import locale
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from detaudit.launch import aslr
from detaudit.launch.vary import Varying
from detaudit.recipe.variations import Variation

CPU = Path("/proc/cpuinfo")


def offered(variations: Iterable[Variation], *, isolate: bool) -> Varying:
    """Return what of these can move here, and why the others cannot."""
    moving, left_out = [], []
    for variation in variations:
        found = _with_locales(variation) if variation.needs == "locale" else variation
        reason = _refusal(found, isolate)
        if reason:
            left_out.append((variation.id, reason))
        else:
            moving.append(found)
    return Varying(tuple(moving), (), tuple(left_out))


def _refusal(variation: Variation, isolate: bool) -> str:
    if variation.needs == "aslr":
        return aslr.refusal()
    if variation.needs == "glibc" and not _glibc():
        return "the C library of this system is not glibc"
    if variation.needs == "avx2" and not _has_avx2():
        return "this processor has no AVX2"
    if variation.needs == "locale" and not all(values.varied for values in variation.env.values()):
        return "no other locale is installed here"
    if variation.needs == "isolate" and not isolate:
        return "it needs --isolate"
    return ""


def _glibc() -> bool:
    with contextlib.suppress(ValueError, OSError):
        return bool(os.confstr("CS_GNU_LIBC_VERSION"))
    return False


def _has_avx2() -> bool:
    try:
        return " avx2 " in CPU.read_text()
    except OSError:
        return False


def _with_locales(variation: Variation) -> Variation:
    """Return it with those locales only that are installed."""
    env = dict(variation.env)
    values = env["LC_ALL"]
    env["LC_ALL"] = msgspec.structs.replace(values, varied=tuple(filter(_installed, values.varied)))
    return msgspec.structs.replace(variation, env=env)


def _installed(name: str) -> bool:
    before = locale.setlocale(locale.LC_COLLATE)
    try:
        locale.setlocale(locale.LC_COLLATE, name)
    except locale.Error:
        return False
    finally:
        locale.setlocale(locale.LC_COLLATE, before)
    return True
