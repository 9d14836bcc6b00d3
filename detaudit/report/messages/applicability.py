"""Why a flag is not applied, and why a variation does not vary."""

from detaudit.compat import assert_never
from detaudit.model import Inapplicable, NotVaried
from detaudit.model.sources import (
    AddressesRandom,
    ByHandOnly,
    FewerThanTwoGpus,
    NeedsIsolate,
    NeedsMachine,
    NoAvx2,
    NoGlibc,
    NoGpu,
    NoLongerNeeded,
    NoSecondLocale,
    NotImported,
    PinnedByRecipe,
    RefusedInProcess,
    TooOld,
    XlaFlagsInFile,
    XlaTooOld,
    XlaUnknown,
)


def inapplicable(found: Inapplicable) -> str:
    """Return why a flag is not applied."""
    match found:
        case ByHandOnly():
            return "detaudit cannot set it: it belongs in the script"
        case NotImported(modules=()):
            return "what it sets was not imported"
        case NotImported(modules=names):
            return f"{' and '.join(names)} {'were' if len(names) > 1 else 'was'} not imported"
        case NoGpu():
            return "no weights on a GPU"
        case FewerThanTwoGpus():
            return "weights on fewer than two GPUs"
        case TooOld(framework=framework, since=since, found=version):
            return f"needs {framework} {since} or later (found {version})"
        case NoLongerNeeded(framework=framework, until=until, found=version):
            return f"not needed after {framework} {until} (found {version})"
        case AddressesRandom(detail=detail) | RefusedInProcess(detail=detail):
            return detail
        case XlaFlagsInFile() | XlaUnknown() | XlaTooOld():
            return _xla(found)
        case _:
            assert_never(found)


def _xla(found: XlaFlagsInFile | XlaUnknown | XlaTooOld) -> str:
    match found:
        case XlaFlagsInFile(file=file, xla_flag=flag):
            return f"XLA_FLAGS points to a file ({file}); add {flag} there"
        case XlaUnknown(xla_flag=flag):
            return f"the Python that trains is unknown, and an XLA that does not know {flag} would abort"
        case XlaTooOld(library=library):
            return f"{library} does not know this flag and would abort"
        case _:
            assert_never(found)


def not_varied(found: NotVaried) -> str:
    """Return why a variation does not vary."""
    match found:
        case AddressesRandom(detail=detail):
            return detail
        case NoGlibc():
            return "the C library is not glibc"
        case NoAvx2():
            return "this CPU has no AVX2"
        case NoSecondLocale():
            return "no second locale is installed"
        case NeedsIsolate():
            return "needs --isolate"
        case NeedsMachine():
            return "needs --jobs 1, because it loads the whole machine"
        case PinnedByRecipe(recipe=recipe):
            return f"recipe {recipe} pins it"
        case _:
            assert_never(found)
