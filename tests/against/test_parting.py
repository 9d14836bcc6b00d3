"""Where two codes part: by what operations take and return, not by their lines or their order."""

from detaudit.against.parting import First, how, parting_of
from detaudit.model import Apart
from detaudit.trace.operations import OpLine


def op(n: int, name: str, ins: str, outs: str, *, updates: bool = False, line: int = 0, **more: object) -> OpLine:
    """Return an operation whose tensors are letters; one that ``updates`` writes to its first input."""
    taken = tuple((f"float32[2]:{letter}", index) for index, letter in enumerate(ins))
    made = tuple(
        (f"float32[2]:{letter}", index if updates else 10 * n + 10 + index, True) for index, letter in enumerate(outs)
    )
    return OpLine(n=n, thread="main", step=1, op=name, ins=taken, outs=made, file="train.py", line=line, **more)  # type: ignore[arg-type]


STEP = [
    op(0, "mm", "xw", "h"),
    op(1, "relu", "h", "r"),
    op(2, "mm_backward", "r", "g", backward=True),
    op(3, "add_", "wg", "v", updates=True),
]


def names(sides: tuple[First | None, First | None]) -> list[str | None]:
    return [side.op.op if side is not None else None for side in sides]


def test_the_same_operations_at_other_lines_and_in_another_order_part_nowhere() -> None:
    moved = [op(5, "relu", "h", "r", line=40), op(4, "mm", "xw", "h", line=41), *STEP[2:]]
    assert parting_of(STEP, moved) == (None, None)


def test_another_operation_is_where_they_part_and_not_what_follows_from_it() -> None:
    other = [
        STEP[0],
        op(1, "gelu", "h", "R"),
        op(2, "mm_backward", "R", "G", backward=True),
        op(3, "add_", "wG", "V", updates=True),
    ]
    sides = parting_of(STEP, other)
    assert names(sides) == ["relu", "gelu"]
    assert how(*sides)[0] is Apart.OPERATION


def test_what_is_only_logged_is_passed_over() -> None:
    logged = [
        STEP[0],
        op(8, "mul", "h", "L"),
        op(9, "round", "L", "M"),
        op(1, "gelu", "h", "R"),
        op(2, "mm_backward", "R", "G", backward=True),
    ]
    assert names(parting_of(STEP, logged)) == ["relu", "gelu"]
    alone = [*STEP, op(8, "mul", "h", "L")]
    assert names(parting_of(STEP, alone)) == [None, "mul"]


def test_a_loss_that_no_gradient_is_made_of_starts_the_backward_pass() -> None:
    a, b = (
        [op(0, name, "e", loss), op(1, "ones", loss, "1"), op(2, "b", "1", "g", backward=True)]
        for name, loss in (("mean", "l"), ("sum", "L"))
    )
    assert names(
        parting_of([*a, op(3, "mm", "gw", "G", backward=True)], [*b, op(3, "mm", "gw", "H", backward=True)])
    ) == ["mean", "sum"]


def test_memory_that_nobody_wrote_is_no_difference() -> None:
    a = [op(0, "empty", "", "1", uninitialized=True), op(1, "normal_", "1", "w", updates=True), *STEP]
    b = [op(0, "empty", "", "2", uninitialized=True), op(1, "normal_", "2", "w", updates=True), *STEP]
    assert parting_of(a, b) == (None, None)


def test_what_differs() -> None:
    a, b = op(0, "add_", "wg", "v", scalars={"alpha": "-0.1"}), op(0, "add_", "wg", "V", scalars={"alpha": "-0.2"})
    assert how(First(a, takes=False), First(b, takes=False)) == (Apart.NUMBER, "alpha", ("-0.1", "-0.2"))
    swapped = op(0, "add_", "gw", "V")
    assert how(First(a, takes=False), First(swapped, takes=False))[0] is Apart.TENSORS
    assert how(First(a, takes=True), First(swapped, takes=True))[0] is Apart.INPUT
    drawn = [op(0, "normal_", "w", letter, random=True, state=letter) for letter in "vV"]
    assert how(*(First(one, takes=False) for one in drawn))[0] is Apart.GENERATOR
    assert how(First(a, takes=False), First(op(0, "add_", "wg", "V"), takes=False))[0] is Apart.OUTPUT
    assert how(None, First(a, takes=False))[0] is Apart.MORE
