"""The op table: which ops are known, and a node's arguments by their names in torch's schema."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from scheduler.ir import op_schemas
from scheduler.ir.graph import Argument, Node
from scheduler.outcome import UserError


class UnsupportedOpError(Exception):
    """An op, or a use of one, for which there is no rule; ``reason`` is one line for the user."""

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(f"{target}: {reason}")
        self.target = target
        self.reason = reason


@dataclass(frozen=True)
class Param:
    """One argument of an op."""

    name: str
    required: bool
    default: Argument = None
    keyword_only: bool = False


@dataclass(frozen=True)
class OpSpec:
    """An op with its overload: ``aten.addmm.default``.

    ``function`` is its name without overload, and for an in-place form that of the functional
    one: ``add`` for ``aten.add_.Tensor``. ``mutates`` is then the argument that it writes.
    """

    target: str
    function: str
    params: tuple[Param, ...]
    mutates: str = ""


# In-place forms whose functional form has another name or overload.
_INPLACE_NAMES = MappingProxyType(
    {
        "aten.pow_.Scalar": "aten.pow.Tensor_Scalar",
        "aten.pow_.Tensor": "aten.pow.Tensor_Tensor",
        "aten.__iand__.Tensor": "aten.__and__.Tensor",
        "aten.__iand__.Scalar": "aten.__and__.Scalar",
        "aten.__ior__.Tensor": "aten.__or__.Tensor",
        "aten.__ior__.Scalar": "aten.__or__.Scalar",
    }
)
# In place these change a tensor's shape or history, not its elements, and torch.export lets all
# later nodes use their result: they are as good as the views without underscore.
_NOT_MUTATING = frozenset({"squeeze", "unsqueeze", "transpose", "t", "swapaxes", "detach"})


def functional_target(target: str) -> str:
    """The op that computes the same without writing to its argument: itself if it is that one.

    ``aten.add_.Tensor`` → ``aten.add.Tensor``.
    """
    if target in _INPLACE_NAMES:
        return _INPLACE_NAMES[target]
    namespace, _, rest = target.partition(".")
    name, _, overload = rest.partition(".")
    inplace = namespace == "aten" and name.endswith("_") and not name.endswith("__")
    return f"aten.{name[:-1]}.{overload}" if inplace else target


def spec_of(target: str) -> OpSpec:
    """The op's entry. Raises ``UnsupportedOpError`` where the table has none."""
    functional = functional_target(target)
    found = _SPECS.get(functional)
    if found is None:
        raise UnsupportedOpError(target, "unknown op")
    if functional == target or found.function in _NOT_MUTATING:
        return found
    return OpSpec(target, found.function, found.params, mutates=found.params[0].name)


def known_targets() -> tuple[str, ...]:
    """Every target in the table, in-place forms not among them, in order."""
    return tuple(sorted(_SPECS))


def bind(node: Node) -> Mapping[str, Argument]:
    """The node's arguments by name, defaults filled in, in the schema's order.

    Raises ``UnsupportedOpError`` for an op that the table does not have, and ``UserError`` where
    the arguments do not fit its schema.
    """
    spec = spec_of(node.target)
    positional = [param for param in spec.params if not param.keyword_only]
    if len(node.args) > len(positional):
        raise UserError(
            f"node {node.name!r}: {node.target} takes {len(positional)} arguments by position, "
            f"not {len(node.args)}"
        )
    given = dict(zip((param.name for param in positional), node.args, strict=False))
    for name, value in node.kwargs.items():
        if name in given or name not in {param.name for param in spec.params}:
            raise UserError(f"node {node.name!r}: {node.target} has no further argument {name!r}")
        given[name] = value
    for param in spec.params:
        if param.required and param.name not in given:
            raise UserError(f"node {node.name!r}: {node.target} lacks its argument {param.name!r}")
    return {param.name: given.get(param.name, param.default) for param in spec.params}


def _read_table(text: str, namespace: str) -> Iterator[tuple[str, OpSpec]]:
    for line in text.splitlines():
        if not line:
            continue
        names, _, signature = line.partition(": ")
        params = _read_signature(signature)
        for name in names.split():
            if namespace:
                target = f"{namespace}.{name}" if "." in name else f"{namespace}.{name}.default"
                function = name.partition(".")[0]
            else:
                target = function = name
            yield target, OpSpec(target, function, params)


def _read_signature(text: str) -> tuple[Param, ...]:
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
    if default is None:
        return Param(name, required=True, keyword_only=keyword_only)
    return Param(name, False, ast.literal_eval(default), keyword_only)


_SPECS: Mapping[str, OpSpec] = MappingProxyType(
    {**dict(_read_table(op_schemas.ATEN, "aten")), **dict(_read_table(op_schemas.PYTHON, ""))}
)
