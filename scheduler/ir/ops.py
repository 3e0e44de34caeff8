"""The row of an op in the op table, and binding of a node's arguments to torch's schema.

The rows are in ``lowering/ops/``, the lowest layer with access to all columns.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from keyword import iskeyword
from types import MappingProxyType
from typing import Any, TypeAlias

from scheduler.errors import UserError
from scheduler.ir.graph import Argument, Node
from scheduler.ir.reference.constraints import Requirements
from scheduler.ir.reference.rule import Rule

#: Maps a builder and the op's arguments by name to its results.
LoweringRule: TypeAlias = Callable[..., Any]


class UnsupportedOpError(Exception):
    """An op, or a use of an op, without a rule. ``reason`` is one line for the user; ``node`` is
    the location of the graph's node, if known."""

    def __init__(self, target: str, reason: str, node: str = "") -> None:
        super().__init__(f"{target}: {reason}" + (f" (node {node})" if node else ""))
        self.target = target
        self.reason = reason


class Elements(StrEnum):
    """The relation of the elements of an op's results to its arguments."""

    COMPUTED = "computed"
    COPIED = "copied"  # an argument's elements, at other positions of a new tensor
    VIEWED = "viewed"  # the first argument's elements, in its memory
    RESHAPED = "reshaped"  # viewed if strides allow it
    VIEWED_IF_CONTIGUOUS = "viewed if contiguous"  # by the argument ``memory_format``
    VIEWED_UNLESS_TRAINING = "viewed unless training"  # by the argument ``train``
    CONVERTED = "converted"  # the first argument's in another type; viewed if the same
    CONVERTED_COPY = "converted copy"


@dataclass(frozen=True)
class NoKernel:
    """Replaces a lowering rule: the op runs through its reference, for this reason."""

    reason: str


@dataclass(frozen=True)
class Param:
    """One argument of an op."""

    name: str
    required: bool
    default: Argument = None
    keyword_only: bool = False


@dataclass(frozen=True)
class Op:
    """One row of the op table: ``aten.addmm`` with all of its overloads.

    ``signatures`` maps the name of an overload (empty for a Python function) to its parameters
    in Python's syntax. ``requires`` are the constraints on random inputs.
    """

    name: str
    signatures: Mapping[str, str]
    lowering: LoweringRule | NoKernel
    reference: Rule
    elements: Elements
    requires: Requirements | None

    @property
    def targets(self) -> tuple[str, ...]:
        """The op's names with overload, as in nodes: ``aten.addmm.default``."""
        return tuple(
            f"{self.name}.{overload}" if overload else self.name for overload in self.signatures
        )


@dataclass(frozen=True)
class Overload:
    """One overload of an op: ``aten.addmm.default``.

    ``mutates`` is the argument that an in-place form writes; ``op`` is the functional form.
    """

    target: str
    op: Op
    params: tuple[Param, ...]
    mutates: str = ""

    @cached_property
    def positional(self) -> tuple[str, ...]:
        """Names of the arguments that may be given by position, in order."""
        return tuple(param.name for param in self.params if not param.keyword_only)

    @cached_property
    def defaults(self) -> Mapping[str, Argument]:
        """Every argument's default by name, in the schema's order; None for required ones."""
        return MappingProxyType({param.name: param.default for param in self.params})

    def bind(self, node: Node) -> Mapping[str, Argument]:
        """Return a node's arguments by name, with defaults, in the schema's order.

        Positional arguments are matched by the file's names, and by position only without names.
        Raises ``UserError`` if they do not fit the schema.
        """
        where = f"node {node.name!r}: {node.target}"
        if not node.labels and len(node.args) > len(self.positional):
            raise UserError(
                f"{where} takes {len(self.positional)} positional arguments, not {len(node.args)}"
            )
        # The ``self`` of dropout_ is the ``input`` of dropout.
        is_in_place = functional_target(self.target) != self.target
        renames_self = is_in_place and "self" not in self.defaults
        bound: dict[str, Argument] = {}
        by_position = zip(node.labels or self.positional, node.args, strict=False)
        for label, value in (*by_position, *node.kwargs.items()):
            name = self.params[0].name if renames_self and label == "self" else label
            if name in bound or name not in self.defaults:
                raise UserError(f"{where}: unknown or duplicate argument {name!r}")
            bound[name] = value
        for param in self.params:
            if param.required and param.name not in bound:
                raise UserError(f"{where} is missing its argument {param.name!r}")
        return {**self.defaults, **bound}


def op(
    name: str,
    signatures: str,
    lowering: LoweringRule | NoKernel,
    reference: Rule,
    elements: Elements = Elements.COMPUTED,
    *,
    requires: Requirements | None = None,
) -> Op:
    """Return a row of the op table.

    ``signatures`` are torch's, as far as binding needs them (names, order, defaults, keyword-only),
    separated by semicolons and preceded by the overloads that share one and a colon:
    ``"self; dim dims: self, dim"``. A signature without a name is that of ``default``.
    """
    texts: dict[str, str] = {}
    for part in signatures.split("; "):
        names, colon, text = part.rpartition(": ")
        default = "default" if name.startswith("aten.") else ""
        texts |= dict.fromkeys(names.split() if colon else [default], text)
    return Op(name, MappingProxyType(texts), lowering, reference, elements, requires)


# In-place forms whose functional form has a different name or overload.
_INPLACE_NAMES = MappingProxyType(
    {
        "aten.transpose_.default": "aten.transpose.int",
        "aten.pow_.Scalar": "aten.pow.Tensor_Scalar",
        "aten.pow_.Tensor": "aten.pow.Tensor_Tensor",
        "aten.__iand__.Tensor": "aten.__and__.Tensor",
        "aten.__iand__.Scalar": "aten.__and__.Scalar",
        "aten.__ior__.Tensor": "aten.__or__.Tensor",
        "aten.__ior__.Scalar": "aten.__or__.Scalar",
    }
)


_OUT = "_out"  # suffix of an overload that writes its result to an argument


def functional_target(target: str) -> str:
    """Return the op that computes the same without writing to its argument; possibly itself.

    ``aten.add_.Tensor`` → ``aten.add.Tensor``.
    """
    if target in _INPLACE_NAMES:
        return _INPLACE_NAMES[target]
    namespace, _, rest = target.partition(".")
    name, _, overload = rest.partition(".")
    inplace = namespace == "aten" and is_in_place(target)
    return f"aten.{name[:-1]}.{overload}" if inplace else target


def functional_forms(target: str) -> Iterator[str]:
    """Yield the possible ops that compute the same without writing to an argument, likeliest first.

    Overloads of in-place ops and of ``out`` variants may have other names than the plain ones.

    ``aten.floor_divide_.Tensor`` → ``aten.floor_divide.Tensor``, ``aten.floor_divide.default``.
    """
    plain = functional_target(target)
    yield plain
    name, _, overload = plain.rpartition(".")
    others: tuple[str, ...] = ()
    if plain != target:
        others = ("default", "Tensor", "Tensor_Tensor")
    elif overload == "out":
        others = ("Tensor", "default")
    elif overload.endswith(_OUT):
        which = overload.removesuffix(_OUT)
        others = (which, f"dim_{which}", "default")
    yield from (f"{name}.{other}" for other in others)


def is_in_place(target: str) -> bool:
    """Whether an op writes to its first argument, by torch's naming rule:
    ``aten.add_.Tensor``, ``mylib.scale_.default``."""
    name = target.partition(".")[2].partition(".")[0]
    return name.endswith("_") and not name.endswith("__")


def make_overload(row: Op, target: str, form: str) -> Overload:
    """Return the overload for a node's target, in-place or not; ``form`` is the row's own target.

    The in-place form of an op that only views its argument changes a tensor's shape or history,
    not its elements, and torch.export makes all later nodes use its result: it mutates nothing. The
    overload ``out`` writes its result to the argument of that name.
    """
    params = parse_signature(row.signatures[form.removeprefix(row.name).removeprefix(".")])
    if target.endswith((".out", _OUT)):
        if all(param.name != "out" for param in params):
            params = (*params, Param("out", required=True, keyword_only=True))
        return Overload(target, row, params, mutates="out")
    writes = form != target and row.elements is not Elements.VIEWED
    # ``polygamma`` has its order first; ``dropout`` writes its ``input``.
    written = next((param.name for param in params if param.name == "self"), params[0].name)
    return Overload(target, row, params, mutates=written if writes else "")


@cache
def parse_signature(text: str) -> tuple[Param, ...]:
    """Parse parameters in Python's syntax with Python's parser."""
    (definition,) = ast.parse(f"def op({text}): pass").body
    assert isinstance(definition, ast.FunctionDef)
    args = definition.args
    missing = len(args.args) - len(args.defaults)
    defaults = [None] * missing + list(args.defaults)
    positional = [_param(a.arg, d, False) for a, d in zip(args.args, defaults, strict=True)]
    keyword = [
        _param(a.arg, d, True) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True)
    ]
    return (*positional, *keyword)


def _param(name: str, default: ast.expr | None, keyword_only: bool) -> Param:
    # ``from_``: Python's keywords cannot be parameter names.
    name = name.removesuffix("_") if iskeyword(name.removesuffix("_")) else name
    if default is None:
        return Param(name, required=True, keyword_only=keyword_only)
    return Param(name, False, ast.literal_eval(default), keyword_only)
