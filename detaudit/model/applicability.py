"""Why a flag is not applied, and why a variation does not vary."""

from typing import TypeAlias

from detaudit.model.facts import Fact


class ByHandOnly(Fact, frozen=True, kw_only=True):
    """detaudit cannot set it: it belongs in the script."""


class NotImported(Fact, frozen=True, kw_only=True):
    """The run imported none of these modules; of an empty tuple, nothing that the flag sets."""

    modules: tuple[str, ...] = ()


class NoGpu(Fact, frozen=True, kw_only=True):
    """No weights were on a GPU."""


class FewerThanTwoGpus(Fact, frozen=True, kw_only=True):
    """The weights were on fewer than two GPUs."""


class TooOld(Fact, frozen=True, kw_only=True):
    """The flag came with version ``since`` of its framework; ``found`` is older."""

    framework: str
    since: str
    found: str


class NoLongerNeeded(Fact, frozen=True, kw_only=True):
    """Version ``until`` of the framework was the last that needs the flag; ``found`` is newer."""

    framework: str
    until: str
    found: str


class AddressesRandom(Fact, frozen=True, kw_only=True):
    """The system does not permit fixed addresses; ``detail`` is what it says."""

    detail: str


class XlaFlagsInFile(Fact, frozen=True, kw_only=True):
    """XLA_FLAGS points to a ``file``, so nothing can be added to it."""

    file: str
    xla_flag: str


class XlaUnknown(Fact, frozen=True, kw_only=True):
    """The Python that trains is unknown, and an XLA that does not know the flag would abort."""

    xla_flag: str


class XlaTooOld(Fact, frozen=True, kw_only=True):
    """The XLA in ``library`` does not know the flag, and would abort."""

    library: str


class RefusedInProcess(Fact, frozen=True, kw_only=True):
    """The recorder could not apply it; ``detail`` is what the framework says."""

    detail: str


Inapplicable: TypeAlias = (
    ByHandOnly
    | NotImported
    | NoGpu
    | FewerThanTwoGpus
    | TooOld
    | NoLongerNeeded
    | AddressesRandom
    | XlaFlagsInFile
    | XlaUnknown
    | XlaTooOld
    | RefusedInProcess
)
"""Why a flag is not applied."""


class NoGlibc(Fact, frozen=True, kw_only=True):
    """The C library is not glibc."""


class NoAvx2(Fact, frozen=True, kw_only=True):
    """The CPU has no AVX2."""


class NoSecondLocale(Fact, frozen=True, kw_only=True):
    """No second locale is installed."""


class NeedsMachine(Fact, frozen=True, kw_only=True):
    """It puts load on the whole machine, so no two runs may go at once."""


class NeedsIsolate(Fact, frozen=True, kw_only=True):
    """It varies only with --isolate."""


class PinnedByRecipe(Fact, frozen=True, kw_only=True):
    """A flag of the recipe pins it."""

    recipe: str


NotVaried: TypeAlias = (
    AddressesRandom | NoGlibc | NoAvx2 | NoSecondLocale | NeedsIsolate | NeedsMachine | PinnedByRecipe
)
"""Why a variation does not vary."""
