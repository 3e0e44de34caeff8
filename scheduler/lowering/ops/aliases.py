"""Aliases of ops in torch, and the copying variants of its views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from scheduler.ir.ops import Elements, Op
from scheduler.ir.reference.data_movement import with_copy

#: Alias by the op's own name; both take the same arguments.
_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "abs": "absolute",
        "acos": "arccos",
        "acosh": "arccosh",
        "asin": "arcsin",
        "asinh": "arcsinh",
        "atan": "arctan",
        "atan2": "arctan2",
        "atanh": "arctanh",
        "channel_shuffle": "native_channel_shuffle",
        "concat": "concatenate",
        "div": "divide",
        "erf": "special_erf",
        "erfc": "special_erfc",
        "erfinv": "special_erfinv",
        "exp2": "special_exp2",
        "expm1": "special_expm1",
        "ge": "greater_equal",
        "gt": "greater",
        "index": "_unsafe_index",
        "le": "less_equal",
        "log1p": "special_log1p",
        "logsumexp": "special_logsumexp",
        "lt": "less",
        "matrix_power": "linalg_matrix_power",
        "movedim": "moveaxis",
        "mul": "multiply",
        "ne": "not_equal",
        "neg": "negative",
        "outer": "ger",
        "sigmoid": "special_expit",
        "split": "unsafe_split",
        "split_with_sizes": "unsafe_split_with_sizes",
        "chunk": "unsafe_chunk",
        "sub": "subtract",
        "trunc": "fix",
        "vstack": "row_stack",
    }
)
#: Views with a copying variant that takes the same arguments.
_COPY_FORMS = (
    *("alias", "detach", "diagonal", "expand", "narrow", "permute", "select", "slice", "split"),
    *("split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view"),
)
#: The overloads of an alias, if it does not have all of the original's.
_OVERLOADS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"unsafe_split": ("Tensor",), "split_copy": ("Tensor",), "_reshape_copy": ("default",)}
)


def alias_rows(rows: Iterable[Op]) -> Iterator[Op]:
    """The rows of the aliases and of the copying variants."""
    row_of_name = {row.name.removeprefix("aten."): row for row in rows}
    for name, alias_name in _ALIASES.items():
        yield _alias_row(row_of_name[name], alias_name)
    for name, copy_name in (
        *((name, f"{name}_copy") for name in _COPY_FORMS),
        ("view", "_reshape_copy"),
    ):
        row = _alias_row(row_of_name[name], copy_name)
        yield replace(row, reference=with_copy(row.reference), elements=Elements.COPIED)


def _alias_row(row: Op, name: str) -> Op:
    overloads = _OVERLOADS.get(name, tuple(row.signatures))
    return replace(
        row,
        name=f"aten.{name}",
        signatures={overload: row.signatures[overload] for overload in overloads},
    )
