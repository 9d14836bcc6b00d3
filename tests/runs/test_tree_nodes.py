"""Nodes that are read from a file are those of the tree that was written there."""

import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from detaudit.model.blocks import FAN_OUT, Digests, HeldTree
from detaudit.runs import log_pages
from detaudit.runs.log_pages import FoldedTree, Places, Top

BASE = 7
"""Bytes in front of the nodes."""

NUMBERS = st.sets(st.integers(0, 40) | st.integers(0, 10**5), max_size=60)


@given(NUMBERS, st.lists(st.tuples(st.integers(1, 6), st.integers(-1, 10**5)), max_size=20))
@example(set(range(40)), [(2, 0), (2, 1), (1, 2), (1, 3), (1, 0)])
def test_a_tree_in_a_file_has_the_nodes_of_one_in_memory(numbers: set[int], asked: list[tuple[int, int]]) -> None:
    held = HeldTree({number: b"%032d" % number for number in numbers})
    places = {number: (number, number + 3) for number in numbers}
    nodes = bytearray()
    top = Top(held.height, held.root, *log_pages.write(held, held.height, 0, places, nodes))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "tree")
        path.write_bytes(bytes(BASE) + nodes)
        found = FoldedTree(path, BASE, top)
        above = [(level, number // FAN_OUT**level) for number in numbers for level in range(1, held.height + 1)]
        for level, number in [*above, *((level, number) for level, number in asked if level <= held.height)]:
            assert list(found.node(level, number).items()) == list(held.node(level, number).items())
        assert dict(Digests(found)) == dict(Digests(held))
        assert dict(Places((found,))) == places


def test_an_empty_tree_has_no_nodes(tmp_path: Path) -> None:
    held = HeldTree({})
    found = FoldedTree(tmp_path, 0, Top(held.height, held.root, *log_pages.write(held, 0, 0, {}, bytearray())))
    assert not dict(Digests(found))
    assert not dict(Places((found,)))
