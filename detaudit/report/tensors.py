"""What the reporters for people share about tensors that differ."""

from collections.abc import Sequence

from detaudit.model import TensorDifference, digits


def kind(dtype: str, shape: Sequence[int]) -> str:
    """Return the type and the shape of a tensor."""
    return f"{dtype}, shape {list(shape)}" if shape else dtype


def lines(found: TensorDifference) -> list[str]:
    """Return how many elements differ, the first of them, and by how much they do."""
    first = found.first
    at = f" at {list(first.index)}" if first.index else ""
    ours, theirs = (
        f"{value} ({bits})" if value else bits for value, bits in zip(first.values, first.bits, strict=True)
    )
    share = f"{found.mismatched} of {found.total} elements ({found.mismatched / found.total:.1%}) differ"
    told = [f"{share}, the first{at}: {ours} against {theirs}"]
    if found.then:
        told.append(f"the next at {', '.join(str(list(one.index)) for one in found.then)}")
    if found.max_abs is not None:
        ulp = "" if found.max_ulp is None else f", {found.max_ulp} ulp"
        told.append(f"largest distance: {digits(found.max_abs)}, relative {digits(found.max_rel)}{ulp}")
    if found.nans:
        told.append(f"NaN on one side or both, and left out of the distance: {found.nans}")
    return told
