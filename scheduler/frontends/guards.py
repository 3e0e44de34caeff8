"""Read the guards of a torch.export file: ``guards_code``, Python expressions over the model's
inputs such as ``L['x'].size()[0] % 4 == 0``. They are parsed, never executed."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from scheduler.errors import UserError
from scheduler.frontends.arguments import value_names
from scheduler.frontends.fields import Json, field, optional_field, read_union
from scheduler.ir.graph import Expr, Guard, Relation, SymbolInfo, TensorMeta
from scheduler.ir.guards import guard_sizes, is_implied
from scheduler.ir.index.functions import symbol
from scheduler.ir.index.text import parse_expr
from scheduler.limits import MAX_EXPRESSION_TEXT, MAX_GUARDS

_SIGNS: Mapping[type[ast.cmpop], str] = MappingProxyType(
    {
        ast.Eq: "==",
        ast.NotEq: "!=",
        ast.LtE: "<=",
        ast.GtE: ">=",
        ast.Lt: "<",
        ast.Gt: ">",
    }
)
_FUNCTIONS = MappingProxyType({"max": "Max", "min": "Min"})
_Path = tuple[str | int, ...]


class _NoGuardError(Exception):
    """The text is not a comparison of sizes, or has an unsupported form."""


def read_guards(
    document: Json,
    tensors: Mapping[str, TensorMeta],
    numbers: Mapping[str, Expr],
    symbols: Mapping[str, SymbolInfo],
) -> tuple[Guard, ...]:
    """Return the file's guards that are not implied by the ranges of sizes.

    Guards that do not compare integers (floats, strides of inputs of a custom class) are left out.
    Raises ``UserError`` if the file does not store them as a list of text.
    """
    texts = optional_field(document, "guards_code", list, "model.json") or []
    if len(texts) > MAX_GUARDS:
        raise UserError(f"{len(texts)} guards; the limit is {MAX_GUARDS}")
    inputs = _inputs_by_path(document) if texts else {}
    guards: dict[Guard, None] = {}
    for text in texts:
        if not isinstance(text, str) or len(text) > MAX_EXPRESSION_TEXT:
            raise UserError("a guard is not a string, or is too long")
        for guard in _Reader(inputs, tensors, numbers).guards(text):
            has_known_sizes = all(name in symbols for name in guard_sizes(guard))
            if has_known_sizes and not is_implied(guard, symbols):
                guards[guard] = None
    return tuple(guards)


class _Reader:
    """Parses one guard text into guards that must all hold."""

    def __init__(
        self,
        inputs: Mapping[_Path, str],
        tensors: Mapping[str, TensorMeta],
        numbers: Mapping[str, Expr],
    ) -> None:
        self._inputs, self._tensors, self._numbers = inputs, tensors, numbers

    def guards(self, text: str) -> Iterator[Guard]:
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        for part in _operands(tree, ast.And):
            try:
                yield Guard(tuple(map(self._relation, _operands(part, ast.Or))))
            except _NoGuardError:
                continue

    def _relation(self, node: ast.expr) -> Relation:
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            raise _NoGuardError
        sign = _SIGNS.get(type(node.ops[0]))
        if sign is None:
            raise _NoGuardError
        return Relation(self._expr(node.left), sign, self._expr(node.comparators[0]))

    def _expr(self, node: ast.expr) -> Expr:
        sizes: list[Expr] = []
        try:
            expr = parse_expr(ast.unparse(self._replaced(node, sizes)))
        except (UserError, RecursionError):
            raise _NoGuardError from None
        return expr.xreplace({symbol(f"_{n}"): value for n, value in enumerate(sizes)})

    def _replaced(self, node: ast.expr, sizes: list[Expr]) -> ast.expr:
        """The tree with each size (an integer input, or a size or stride of an input) replaced by a
        name (``_0``, ``_1`` …); the sizes are added to ``sizes``."""
        match node:
            case ast.BinOp():
                left, right = (self._replaced(part, sizes) for part in (node.left, node.right))
                return ast.BinOp(left, node.op, right)
            case ast.UnaryOp():
                return ast.UnaryOp(node.op, self._replaced(node.operand, sizes))
            case ast.Call(func=ast.Name(id=name), args=args) if name in _FUNCTIONS:
                operands = [self._replaced(arg, sizes) for arg in args]
                return ast.Call(ast.Name(_FUNCTIONS[name]), operands, [])
            case ast.Constant():
                return node
            case ast.Subscript(
                value=ast.Call(func=ast.Attribute(value=tensor, attr="size" | "stride" as label)),
                slice=ast.Constant(value=int(axis)),
            ):
                meta = self._tensors.get(self._input(tensor))
                extents: Sequence[Expr] = () if meta is None else getattr(meta, label)
                size = extents[axis] if axis < len(extents) else None
            case _:
                size = self._numbers.get(self._input(node))
        if size is None:
            raise _NoGuardError
        sizes.append(size)
        return ast.Name(f"_{len(sizes) - 1}")

    def _input(self, node: ast.expr) -> str:
        path: list[str | int] = []
        while isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            if not isinstance(node.slice.value, str | int):
                raise _NoGuardError
            path.append(node.slice.value)
            node = node.value
        if not isinstance(node, ast.Name) or node.id != "L":
            raise _NoGuardError
        path.reverse()
        if tuple(path) not in self._inputs and len(path) > 1:
            # The file names each argument of *args and **kwargs separately.
            first, key, *rest = path
            path = [key if isinstance(key, str) else f"{first}_{key}", *rest]
        return self._inputs.get(tuple(path), "")


def _operands(node: ast.expr, kind: type[ast.boolop]) -> list[ast.expr]:
    """The operands of ``and`` or ``or``."""
    joined = isinstance(node, ast.BoolOp) and isinstance(node.op, kind)
    return node.values if joined else [node]  # type: ignore[attr-defined]


def _inputs_by_path(document: Json) -> dict[_Path, str]:
    """Names of the user's inputs by their path in the model's arguments."""
    module = field(document, "graph_module", dict, "model.json")
    signature = field(module, "signature", dict, "graph_module")
    names: list[str | None] = []
    for spec in field(signature, "input_specs", list, "signature"):
        kind, content = read_union(spec, "signature input")
        if kind == "user_input":
            names += value_names(field(content, "arg", dict, "signature input"), "signature input")
        elif kind == "constant_input":
            names.append(None)
    paths = list(_paths(module))
    if len(paths) != len(names):
        return {}
    return {path: name for path, name in zip(paths, names, strict=True) if name is not None}


def _paths(module: Json) -> Iterator[_Path]:
    """The path of each input, in order; nothing if the file does not state them."""
    calls = optional_field(module, "module_call_graph", list, "graph_module") or []
    top = next((c for c in calls if isinstance(c, dict) and c.get("fqn") == ""), {})
    signature = optional_field(top, "signature", dict, "module_call_graph") or {}
    arguments = optional_field(signature, "forward_arg_names", list, "signature") or []
    try:
        spec = json.loads(signature.get("in_spec", ""))[1]
        positional, by_name = (group["children_spec"] for group in spec["children_spec"])
        keys = json.loads(spec["children_spec"][1]["context"])
        parts = [*zip(arguments, positional, strict=False), *zip(keys, by_name, strict=True)]
        for name, part in parts:
            if not isinstance(name, str):
                raise TypeError
            yield from ((name, *path) for path in _leaves(part))
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError):
        return


def _leaves(spec: Any) -> Iterator[_Path]:
    """Paths of a tree's leaves. The children of a node that is neither a list nor a dict have no
    keys."""
    kind, children = spec["type"], spec["children_spec"]
    if kind is None:
        yield ()
        return
    keys: Iterable[Any] = range(len(children))
    if kind == "builtins.dict":
        keys = json.loads(spec["context"])
    for key, child in zip(keys, children, strict=True):
        if not isinstance(key, str | int):
            raise TypeError
        yield from ((key, *path) for path in _leaves(child))
