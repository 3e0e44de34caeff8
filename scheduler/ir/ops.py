"""What the row of an op says, and a node's arguments by their names in torch's schema.

The rows are in ``lowering/ops/``, the lowest layer that sees all their columns.
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

#: From a builder and the op's arguments by name to its results.
LoweringRule: TypeAlias = Callable[..., Any]


class UnsupportedOpError(Exception):
    """An op, or a use of one, for which there is no rule; ``reason`` is one line for the user, and
    ``node`` says which node of the graph it is, where that is known."""

    def __init__(self, target: str, reason: str, node: str = "") -> None:
        super().__init__(f"{target}: {reason}" + (f" (node {node})" if node else ""))
        self.target = target
        self.reason = reason


class Elements(StrEnum):
    """What the elements of an op's results are."""

    COMPUTED = "computed"
    COPIED = "copied"  # an argument's own, at other places of a new tensor
    VIEWED = "viewed"  # the first argument's own, in its memory
    RESHAPED = "reshaped"  # viewed where strides allow it
    VIEWED_IF_CONTIGUOUS = "viewed if contiguous"  # by the argument ``memory_format``
    VIEWED_UNLESS_TRAINING = "viewed unless training"  # by the argument ``train``
    CONVERTED = "converted"  # the first argument's in another type; in its type, viewed
    CONVERTED_COPY = "converted copy"


@dataclass(frozen=True)
class NoKernel:
    """In place of a lowering rule: the op runs through its reference, for this reason."""

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
    """One row: ``aten.addmm``, in all its overloads.

    ``signatures`` are Python's text for parameters by the name of the overload (empty for a
    function of Python's own). ``requires`` is what random inputs must respect.
    """

    name: str
    signatures: Mapping[str, str]
    lowering: LoweringRule | NoKernel
    reference: Rule
    elements: Elements
    requires: Requirements | None

    @property
    def targets(self) -> tuple[str, ...]:
        """Its names with overload, as nodes have them: ``aten.addmm.default``."""
        return tuple(f"{self.name}.{each}" if each else self.name for each in self.signatures)


@dataclass(frozen=True)
class Overload:
    """An op's one form: ``aten.addmm.default``.

    ``mutates`` is the argument that an in-place form writes; its ``op`` is the functional one.
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

    def _own_name(self, name: str) -> str:
        """What the functional form calls an argument: dropout's ``input`` is ``self`` in place."""
        inplace = functional_target(self.target) != self.target
        renamed = inplace and name == "self" and name not in self.defaults
        return self.params[0].name if renamed else name

    def bind(self, node: Node) -> Mapping[str, Argument]:
        """A node's arguments by name, defaults filled in, in the schema's order.

        Positional arguments go by the names that the file gives them, and by position only where
        it gives none. Raises ``UserError`` where they do not fit the schema.
        """
        where = f"node {node.name!r}: {node.target}"
        if not node.labels and len(node.args) > len(self.positional):
            raise UserError(
                f"{where} takes {len(self.positional)} arguments by position, not {len(node.args)}"
            )
        given: dict[str, Argument] = {}
        by_position = zip(node.labels or self.positional, node.args, strict=False)
        for label, value in (*by_position, *node.kwargs.items()):
            name = self._own_name(label)
            if name in given or name not in self.defaults:
                raise UserError(f"{where} has no further argument {name!r}")
            given[name] = value
        for param in self.params:
            if param.required and param.name not in given:
                raise UserError(f"{where} lacks its argument {param.name!r}")
        return {**self.defaults, **given}


def op(
    name: str,
    signatures: str,
    lowering: LoweringRule | NoKernel,
    reference: Rule,
    elements: Elements = Elements.COMPUTED,
    *,
    requires: Requirements | None = None,
) -> Op:
    """A row.

    ``signatures`` are torch's, as far as binding needs them (names, order, defaults, which are by
    keyword only), with a semicolon between them, the overloads that share one before a colon:
    ``"self; dim dims: self, dim"``. Without a name before it the overload is ``default``.
    """
    texts: dict[str, str] = {}
    for part in signatures.split("; "):
        names, colon, text = part.rpartition(": ")
        default = "default" if name.startswith("aten.") else ""
        texts |= dict.fromkeys(names.split() if colon else [default], text)
    return Op(name, MappingProxyType(texts), lowering, reference, elements, requires)


# In-place forms whose functional form has another name or overload.
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


_OUT = "_out"  # at the end of an overload that writes its result to an argument


def functional_target(target: str) -> str:
    """The op that computes the same without writing to its argument: itself if it is that one.

    ``aten.add_.Tensor`` → ``aten.add.Tensor``.
    """
    if target in _INPLACE_NAMES:
        return _INPLACE_NAMES[target]
    namespace, _, rest = target.partition(".")
    name, _, overload = rest.partition(".")
    inplace = namespace == "aten" and is_in_place(target)
    return f"aten.{name[:-1]}.{overload}" if inplace else target


def functional_forms(target: str) -> Iterator[str]:
    """The ops that compute what this one does, without writing to an argument, the likeliest first:
    overloads of in-place ops and of those with ``out`` are not always called as the plain ones.

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
    yield from (f"{name}.{each}" for each in others)


def is_in_place(target: str) -> bool:
    """Whether an op's name says that it writes to its first argument, as torch's rule for names is:
    ``aten.add_.Tensor``, ``mylib.scale_.default``."""
    name = target.partition(".")[2].partition(".")[0]
    return name.endswith("_") and not name.endswith("__")


def make_overload(row: Op, target: str, form: str) -> Overload:
    """The form of a row that a node's target names, in place or not; ``form`` is one of its own.

    In place, an op that only views its argument changes a tensor's shape or history, not its
    elements, and torch.export lets all later nodes use its result: it mutates nothing. The overload
    ``out`` writes its result to the argument of that name.
    """
    params = parse_signature(row.signatures[form.removeprefix(row.name).removeprefix(".")])
    if target.endswith((".out", _OUT)):
        if all(param.name != "out" for param in params):
            params = (*params, Param("out", required=True, keyword_only=True))
        return Overload(target, row, params, mutates="out")
    writes = form != target and row.elements is not Elements.VIEWED
    # ``polygamma`` has its order first, ``dropout`` calls what it writes its input.
    written = next((param.name for param in params if param.name == "self"), params[0].name)
    return Overload(target, row, params, mutates=written if writes else "")


@cache
def parse_signature(text: str) -> tuple[Param, ...]:
    """Parameters from Python's own form for them, read by Python's own parser."""
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
    # ``from_``: Python's own words are no names of parameters.
    name = name.removesuffix("_") if iskeyword(name.removesuffix("_")) else name
    if default is None:
        return Param(name, required=True, keyword_only=keyword_only)
    return Param(name, False, ast.literal_eval(default), keyword_only)
