"""What a training leaves behind beside the weights that it updates."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class State(Protocol):
        """What a training leaves behind beside the weights that it updates."""

        def at_step(self) -> str | None:
            """Return a digest of it after a step, None if there is nothing to compare."""

        def names(self) -> dict[int, str]:
            """Return the names of the tensors of models that ran since the last step, by their id()."""

        def at_end(self, of_task: bool = False) -> list[list[Any]]:
            """Return its tensors as described for ``state`` in wire.py, at the end of a task only what ran in it."""

        def end(self) -> None:
            """Stop recording: the process ends, and nothing was trained."""

        def forget(self) -> None:
            """Start over, as in a forked child."""
