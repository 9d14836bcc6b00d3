"""Why runs may differ on a machine, and what to do about it."""

from detaudit.compat import assert_never
from detaudit.model import Risk
from detaudit.model.audit import RandomAddresses, RetiredSetting, ThreadsFollowMachine, VariablesUnset
from detaudit.report.messages.wording import both


def sentence(found: Risk) -> str:
    """Return the risk."""
    match found:
        case VariablesUnset(variables=variables):
            return f"{both(variables)} {'is' if len(variables) == 1 else 'are'} not set"
        case RandomAddresses():
            return "memory addresses change in every process (ASLR)"
        case RetiredSetting(variable=variable, value=value, why=why):
            return f"{variable}={value} is set, but {why}"
        case ThreadsFollowMachine(cpus=cpus):
            return (
                f"the number of threads follows the number of processors ({cpus:,} here), so sums may round "
                "differently on another machine"
            )
        case _:
            assert_never(found)


def fix(found: Risk) -> str:
    """Return what to do about it."""
    match found:
        case VariablesUnset(flag=flag, by_hand=by_hand) | RandomAddresses(flag=flag, by_hand=by_hand):
            return f"fix: {by_hand}, or use --flag {flag}"
        case RetiredSetting(replacement=""):
            return "Unset it."
        case RetiredSetting(replacement=replacement):
            return f"Use --flag {replacement} instead."
        case ThreadsFollowMachine():
            return "Set the same number on every machine: OMP_NUM_THREADS=2 python train.py"
        case _:
            assert_never(found)
