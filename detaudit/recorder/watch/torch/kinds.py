"""Classify the operations of torch by their schemas: what they write, whether they draw, or only return views."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OVERWRITES = {
    f"aten::{name}_"
    for name in (
        "uniform", "normal", "fill", "zero", "copy", "random", "bernoulli", "exponential", "geometric", "cauchy",
        "log_normal", "set", "resize", "_foreach_copy", "_foreach_zero",
    )
}  # fmt: skip
"""These only write to their first argument, whose previous contents are not an input."""

ENTERS = ("aten::lift_fresh", "aten::set_")
"""Through these, memory that torch did not allocate becomes a tensor."""


class OpKind:
    """The properties of an operation, from its schema. If ``only`` is given, all other operations are passed over."""

    def __init__(self, torch: Any, func: Any, only: frozenset[str] | None = None) -> None:
        schema = func._schema
        name: str = schema.name
        self.func, self.name = func, str(func)
        written = [argument for argument in schema.arguments if _is_written(argument)]
        self.written = {argument.name for argument in written}
        self.places = {place for place, argument in enumerate(schema.arguments) if _is_written(argument)}
        self.only_written = {argument.name for argument in written if argument.is_out}
        self.overwrites = name in _OVERWRITES
        self.collective = name.startswith("c10d::")
        if self.collective:  # writes to its first argument, which its schema does not say
            self.places = {0}
            self.overwrites = schema.arguments[0].name.startswith("output") or name.startswith("c10d::recv")
        returns = schema.returns
        aliases = bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)
        views = (aliases and not written) or name in ("aten::_unsafe_view", "aten::_reshape_alias")
        self.enters = name.startswith(ENTERS)
        self.passed_over = (views and not self.enters) or name.startswith(("profiler::", "prim::"))
        self.passed_over |= only is not None and name.removeprefix("aten::") not in only
        self.uninitialized = "empty" in name or name == "aten::resize_"
        self.random = torch.Tag.nondeterministic_seeded in func.tags


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write
