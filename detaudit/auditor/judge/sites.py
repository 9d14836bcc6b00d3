"""Name what differs between two trainings: the tensor of a model, the fit, the file, the part of a value."""

from collections import Counter

from detaudit.model import FITTED, NAMED, ModelTensor, Stage, Training


def site(a: Training, b: Training, step: int, stage: Stage) -> str | None:
    """Return the name of the first thing that differs in a stage and the number of others, None if it has no name."""
    if stage is Stage.STATE:
        differing = _differing_tensors(a, b)
        found = {tensor.name for tensor in differing if tensor.buffer} or {tensor.name for tensor in differing}
    elif stage is Stage.HYPERPARAMETERS:
        before, after = (_in_force(part, step) for part in (a, b))
        changed = (name for name in before if name in after and before[name] != after[name])
        found = {f"{name} {before[name]} and {after[name]}" for name in changed}
    elif stage in NAMED or a.framework in FITTED:
        one, other = (part.digests.get(stage, {}).get(step, ()) for part in (a, b))
        found = {part.partition(" ")[2] for part in {*one} ^ {*other}} - {""}
        if stage is Stage.ARTIFACT:  # a file has a digest of its own, which what is in it says better
            found -= {name.partition(": ")[0] for name in found if ": " in name}
    else:
        found = set()
    if not found:
        return None
    first, *more = sorted(found)
    return f"{first} and {len(more)} more" if more else first


def _in_force(part: Training, step: int) -> dict[str, str]:
    """Return the hyperparameters with which a step was made: they were recorded when they changed."""
    found: dict[str, str] = {}
    recorded = part.digests.get(Stage.HYPERPARAMETERS, {})
    for one in sorted(one for one in recorded if one <= step):
        for event in recorded[one]:
            values = (value.partition("=") for value in event.partition(" ")[2].split("; "))
            found.update({name: value for name, _, value in values})
    return found


def _differing_tensors(a: Training, b: Training) -> set[ModelTensor]:
    """Return the tensors that only the models of one run hold at the end."""
    ours, theirs = (Counter(part.final.state if part.final else ()) for part in (a, b))
    return {*(ours - theirs), *(theirs - ours)}
