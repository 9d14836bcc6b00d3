"""What the optimizers of Keras hold has the same names in a model that was loaded, tested with fakes."""

import weakref
from typing import Any

import numpy as np

from detaudit import wire
from detaudit.recorder.frameworks.tensorflow.training import Optimizers


class Variable:
    def __init__(self, path: str, value: Any) -> None:
        self.path, self.name, self.value = path, path.rpartition("/")[2], np.asarray(value)


class Adam:
    """One that was built for a weight, in a model whose name is part of its path, or is not."""

    def __init__(self, model: str, velocity: float = 0.5) -> None:
        weight = Variable(f"{model}dense/kernel", [1.0, 2.0])
        prefix = f"adam/{model.replace('/', '_')}dense_kernel"
        self._trainable_variables = [weight]
        self.variables = [
            Variable("adam/iteration", 8),
            Variable("adam/learning_rate", 0.02),
            Variable(f"{prefix}_momentum", [0.25, 0.25]),
            Variable(f"{prefix}_velocity", [velocity, velocity]),
        ]


class Reader:
    def array(self, value: Variable) -> Any:
        return value.value

    def part(self, name: str, value: Variable) -> tuple[str, str, tuple[int, ...], int]:
        return name, str(value.value.dtype), value.value.shape, hash(value.value.tobytes()) & 0xFFFF


def held_by(*optimizers: Adam, trained: tuple[Adam, ...]) -> list[tuple[str, str, str, str]]:
    sink: Any = None
    reader: Any = Reader()
    known = Optimizers(sink, reader)
    known._made = [weakref.ref(one) for one in optimizers]
    weights = [one for optimizer in trained for one in optimizer._trainable_variables]
    return [*known.held(lambda variable: any(variable is one for one in weights))]


def test_a_loaded_model_has_the_same_names_and_values() -> None:
    built, loaded = Adam("sequential/"), Adam("")
    values = held_by(built, trained=(built,))
    assert [(of, name) for of, name, _, _ in values] == [
        (wire.HELD_OPTIMIZER, "Adam: iteration"),
        (wire.HELD_OPTIMIZER, "Adam: momentum of dense/kernel"),
        (wire.HELD_OPTIMIZER, "Adam: velocity of dense/kernel"),
    ]
    assert values[0][2] == "8"
    assert held_by(loaded, trained=(loaded,)) == values


def test_a_value_that_differs_is_that_one() -> None:
    built, other = Adam("sequential/"), Adam("sequential/", velocity=0.0)
    pairs = zip(held_by(built, trained=(built,)), held_by(other, trained=(other,)), strict=True)
    assert [ours[1] for ours, theirs in pairs if ours != theirs] == ["Adam: velocity of dense/kernel"]


def test_an_optimizer_of_a_model_that_is_not_trained_holds_nothing() -> None:
    replaced, loaded = Adam("sequential/"), Adam("")
    assert held_by(replaced, loaded, trained=(loaded,)) == held_by(loaded, trained=(loaded,))
    assert held_by(replaced, trained=()) == []
