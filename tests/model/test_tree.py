"""A tree of digests says what a look at all of them would."""

from collections.abc import Mapping

from hypothesis import example, given
from hypothesis import strategies as st

from detaudit.model import blocks
from detaudit.model.blocks import FAN_OUT, Digests, HeldTree, Node

DIGESTS = st.dictionaries(st.integers(0, 300) | st.integers(0, 10**6), st.sampled_from([b"a", b"b"]), max_size=40)
DENSE = st.builds(
    lambda size, changes: {number: b"b" if number in changes else b"a" for number in range(size)},
    st.integers(0, 600),
    st.sets(st.integers(0, 599), max_size=3),
)
EITHER = DIGESTS | DENSE


class Counted(HeldTree):
    """A tree that keeps which nodes were looked at."""

    def __init__(self, digests: Node) -> None:
        self.seen: list[tuple[int, int]] = []
        super().__init__(digests)
        self.seen.clear()

    def node(self, level: int, number: int) -> Node:
        self.seen.append((level, number))
        return super().node(level, number)


def scan(a: Mapping[int, bytes], b: Mapping[int, bytes], shared: bool) -> list[int]:
    numbers = a.keys() & b.keys() if shared else a.keys() | b.keys()
    return sorted(number for number in numbers if a.get(number) != b.get(number))


@given(EITHER, EITHER, st.booleans())
@example({0: b"a"}, {0: b"a", FAN_OUT**3: b"a"}, False)
@example({}, {0: b"a"}, False)
def test_what_differs_is_what_a_scan_finds(a: dict[int, bytes], b: dict[int, bytes], shared: bool) -> None:
    ours, theirs = HeldTree(a), HeldTree(b)
    assert list(blocks.differing_leaves(ours, theirs, shared=shared)) == scan(a, b, shared)
    assert (ours.root == theirs.root) == (a == b)


@given(EITHER, EITHER)
def test_the_first_that_differs_takes_few_nodes(a: dict[int, bytes], b: dict[int, bytes]) -> None:
    ours, theirs = Counted(a), Counted(b)
    first = next(blocks.differing_leaves(ours, theirs), None)
    assert first == min(scan(a, b, False), default=None)
    for one in (ours, theirs):
        assert len(one.seen) == len(set(one.seen)) <= (2 * one.height if a != b else 0)


def test_the_top_of_a_lower_tree_is_not_looked_at_if_a_higher_one_has_the_same_node() -> None:
    lower, higher = Counted(dict.fromkeys(range(FAN_OUT), b"a")), Counted(dict.fromkeys(range(FAN_OUT + 1), b"a"))
    assert list(blocks.differing_leaves(lower, higher)) == [FAN_OUT]
    assert (1, 0) not in lower.seen + higher.seen


@given(EITHER, st.integers(-1, 700) | st.integers(0, 10**7))
def test_the_digests_of_a_tree_are_those_that_it_was_made_of(digests: dict[int, bytes], number: int) -> None:
    found = Digests(HeldTree(digests))
    assert dict(found) == digests
    assert list(found) == sorted(digests)
    assert found.get(number) == digests.get(number)
    assert (len(found), bool(found)) == (len(digests), bool(digests))


def test_the_order_in_which_digests_are_given_does_not_matter() -> None:
    assert HeldTree({2: b"a", 1: b"b"}).root == HeldTree({1: b"b", 2: b"a"}).root


def test_a_tree_is_no_higher_than_it_must_be() -> None:
    sizes = {0: 0, 1: 1, FAN_OUT: 1, FAN_OUT + 1: 2, FAN_OUT**2 + 1: 3}
    assert {size: HeldTree(dict.fromkeys(range(size), b"a")).height for size in sizes} == sizes
