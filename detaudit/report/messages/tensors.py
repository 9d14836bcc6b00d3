"""How tensors differ, for all reports."""

from collections.abc import Sequence

from detaudit.model import FirstMismatch, TensorDifference
from detaudit.model.fact import count
from detaudit.report.messages.wording import brief


def kind(dtype: str, shape: Sequence[int]) -> str:
    """Return the type and the shape of a tensor."""
    return f"{dtype}, shape {list(shape)}" if shape else dtype


def lines(found: TensorDifference) -> list[str]:
    """Return how many elements differ, the first of them, and how far apart they are."""
    at = f" at {list(found.first.index)}" if found.first.index else ""
    elements = f"{found.mismatched:,} of {count(found.total, 'element')}"
    verb = "differs" if found.mismatched == 1 else "differ"
    share = f"{elements} {verb} ({found.mismatched / found.total:.1%})"
    text = [f"{share}, first{at}: {_values(found.first)}"]
    if found.next:
        text.append(f"next: {', '.join(str(list(one.index)) for one in found.next)}")
    if found.max_abs is not None:
        ulp = "" if found.max_ulp is None else f", {found.max_ulp:,} ulp"
        text.append(f"largest difference: {brief(found.max_abs)} (relative {brief(found.max_rel)}{ulp})")
    if found.nans:
        text.append(f"{count(found.nans, 'element')} with NaN on at least one side, not counted in the difference")
    return text


def _values(found: FirstMismatch) -> str:
    pairs = zip(found.values, found.bits, strict=True)
    return " vs ".join(f"{value} ({bits})" if value else bits for value, bits in pairs)
