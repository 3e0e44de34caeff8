"""Convert the arguments and tensor metas of a torch.export file (schema major 8) to the IR.

The tags and enumeration numbers are those of torch/_export/serde/schema.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from scheduler.errors import UserError
from scheduler.frontends.fields import Json, field, quote_value, read_union, value_name
from scheduler.frontends.srepr import parse_plain, parse_srepr
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Argument, Constant, Expr, Ref, TensorMeta
from scheduler.ir.index.functions import as_expr
from scheduler.ir.index.parser import NotAnIntegerError
from scheduler.limits import (
    INT64_END,
    MAX_ARGUMENTS,
    MAX_EXPRESSIONS_TEXT,
    MAX_OUTPUTS,
    MAX_RANK,
    MAX_STRING,
)

_LAYOUTS = {7: "strided"}
_MEMORY_FORMATS = {
    1: "contiguous_format",
    2: "channels_last",
    3: "channels_last_3d",
    4: "preserve_format",
}
_CONSTANT = (Ref, bool, int, float, str)
_COMPLEX32 = 9


def read_dtype(code: Any, where: str) -> DType:
    """The element type with this torch number."""
    try:
        return DType.from_torch_code(code if type(code) is int else -1)
    except KeyError as error:
        name = " complex32" if type(code) is int and code == _COMPLEX32 else ""
        known = ", ".join(d.name.lower() for d in DType)
        raise UserError(
            f"{where}: unknown dtype {quote_value(code)}{name} (known: {known})"
        ) from error


def read_int(value: Any, where: str) -> int:
    """An integer of at most 64 bits."""
    if type(value) is not int or not -INT64_END <= value < INT64_END:
        raise UserError(f"{where}: not a 64-bit integer: {quote_value(value)}")
    return value


def read_float(value: Any, where: str) -> float:
    """A number; infinities and NaN are stored as text."""
    if value in ("Infinity", "-Infinity", "NaN"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"{where}: not a number: {quote_value(value)}")
    try:
        return float(value)
    except OverflowError:
        raise UserError(f"{where}: number out of range: {quote_value(value)}") from None


class Expressions:
    """The expressions of one file. Each text is parsed once; example values are collected along.

    ``plain``: the file writes them as sympy prints them, as files before schema 8 do.
    """

    def __init__(self, plain: bool = False) -> None:
        self._plain = plain
        self._unread: dict[str, Expr] = {}
        self._parsed: dict[str, Expr] = {}
        self._characters = 0
        self.hints: dict[Expr, int] = {}

    def read(self, data: Any, where: str) -> Expr:
        """A ``SymInt``: an integer, or an expression with a hint."""
        tag, content = read_union(data, where)
        if tag == "as_int":
            return as_expr(read_int(content, where))
        if tag != "as_expr":
            raise UserError(f"{where}: unknown kind of size {tag!r}")
        text = field(content, "expr_str", str, where)
        if text not in self._parsed:
            self._characters += len(text)
            if self._characters > MAX_EXPRESSIONS_TEXT:
                raise UserError(f"{where}: the file contains too many different expressions")
            parse = parse_plain if self._plain else partial(parse_srepr, unread=self._unread)
            try:
                self._parsed[text] = parse(text)
            except UserError as error:
                raise type(error)(f"{where}: {error}") from error
        expr = self._parsed[text]
        hint = content.get("hint")
        if hint is not None:
            self.hints.setdefault(expr, read_int(field(hint, "as_int", int, where), where))
        return expr

    def read_number(self, data: Any, where: str) -> Expr | None:
        """A ``SymInt`` that is not a tensor size. Returns None for an expression that is not made
        of integers; the node that makes it then defines the value."""
        try:
            return self.read(data, where)
        except NotAnIntegerError:
            return None


def read_tensor_meta(data: Any, expressions: Expressions, where: str) -> TensorMeta:
    """Element type, sizes and strides of a value."""
    layout = field(data, "layout", int, where) if isinstance(data, dict) else 7
    if layout not in _LAYOUTS:
        raise UserError(f"{where}: layout {layout} is not supported: only strided tensors are")
    return TensorMeta(
        read_dtype(field(data, "dtype", int, where), where),
        _extents(data, "sizes", expressions, where),
        _extents(data, "strides", expressions, where),
    )


def _extents(data: Any, label: str, expressions: Expressions, where: str) -> tuple[Expr, ...]:
    """Sizes or strides."""
    parts = field(data, label, list, where)
    if len(parts) > MAX_RANK:
        raise UserError(f"{where} has {len(parts)} {label}; the limit is {MAX_RANK}")
    return tuple(expressions.read(part, where) for part in parts)


def read_argument(data: Any, where: str) -> Argument:
    """One argument of a node."""
    tag, content = read_union(data, where)
    if tag in _LISTS:
        if not isinstance(content, list):
            raise UserError(f"{where}: {tag!r} is not a list")
        _check_length(content, where)
        return tuple(_LISTS[tag](part, where) for part in content)
    if tag == "as_none":
        return None
    if tag not in _SINGLE:
        raise UserError(f"{where}: arguments of kind {tag!r} are not supported")
    return _SINGLE[tag](content, where)


def _check_length(parts: list[Any], where: str) -> None:
    if len(parts) > MAX_ARGUMENTS:
        raise UserError(f"{where} has {len(parts)} parts; the limit is {MAX_ARGUMENTS}")


def value_names(data: Any, where: str) -> Iterator[str | None]:
    """Names of the values that an output makes; None for an output without a value."""
    tag, content = read_union(data, where)
    if tag in ("as_tensor", "as_custom_obj", "as_token"):
        yield value_name(content, where)
    elif tag in ("as_sym_int", "as_sym_float", "as_sym_bool"):
        kind, _ = read_union(content, where)
        yield value_name(content, where, "as_name") if kind == "as_name" else None
    elif tag in ("as_tensors", "as_optional_tensors", "as_sym_ints"):
        inner = {"as_tensors": "as_tensor", "as_sym_ints": "as_sym_int"}.get(tag)
        parts = field(data, tag, list, where)
        if len(parts) > MAX_OUTPUTS:
            raise UserError(f"{where} has {len(parts)} results; the limit is {MAX_OUTPUTS}")
        for part in parts:
            yield from value_names({inner: part} if inner else part, where)
    elif tag == "as_optional_tensor":
        yield from value_names(content, where)
    elif tag in ("as_none", "as_int", "as_float", "as_bool", "as_string"):
        yield None
    else:
        raise UserError(f"{where}: outputs of kind {tag!r} are not supported")


def output_values(data: Any, where: str) -> list[Ref | Constant]:
    """The values or constants that an output of the whole graph consists of."""
    names = list(value_names(data, where))
    if None not in names:
        return [Ref(name) for name in names if name is not None]
    argument = read_argument(data, where)
    values = argument if isinstance(argument, tuple) else (argument,)
    return [value for value in values if value is None or isinstance(value, _CONSTANT)]


def _tensor(data: Any, where: str) -> Argument:
    return Ref(value_name(data, where))


def _bool(data: Any, where: str) -> Argument:
    if not isinstance(data, bool):
        raise UserError(f"{where}: not a boolean: {quote_value(data)}")
    return data


def _complex(data: Any, where: str) -> Argument:
    parts = (field(data, part, object, where) for part in ("real", "imag"))
    return complex(*(read_float(part, where) for part in parts))


def _string(data: Any, where: str) -> Argument:
    if not isinstance(data, str):
        raise UserError(f"{where}: not a string: {quote_value(data)}")
    if len(data) > MAX_STRING:
        raise UserError(f"{where}: {len(data)} characters; the limit is {MAX_STRING}")
    return data


def _symbolic(data: Any, where: str) -> Argument:
    """The name of a symbolic value, or the number itself."""
    tag, content = read_union(data, where)
    if tag == "as_name":
        return Ref(value_name(data, where, "as_name"))
    readers: dict[str, _Reader] = {"as_int": read_int, "as_float": read_float, "as_bool": _bool}
    if tag not in readers:
        raise UserError(f"{where}: unknown symbolic value {tag!r}")
    return readers[tag](content, where)


def _optional_tensor(data: Any, where: str) -> Argument:
    tag, content = read_union(data, where)
    return _tensor(content, where) if tag == "as_tensor" else None


def _device(data: Any, where: str) -> Argument:
    kind = _string(field(data, "type", str, where), where)
    index = data.get("index")
    return kind if index is None else f"{kind}:{read_int(index, where)}"


def _enumeration(names: dict[int, str], label: str) -> _Reader:
    def read(data: Any, where: str) -> Argument:
        if type(data) is not int or data not in names:
            raise UserError(f"{where}: unknown {label} {quote_value(data)}")
        return names[data]

    return read


def _list_of(read: _Reader) -> _Reader:
    def read_all(data: Any, where: str) -> Argument:
        if not isinstance(data, list):
            raise UserError(f"{where}: not a list: {quote_value(data)}")
        _check_length(data, where)
        return tuple(read(part, where) for part in data)

    return read_all


_Reader = Callable[[Any, str], Argument]

_SINGLE: dict[str, _Reader] = {
    "as_tensor": _tensor,
    "as_optional_tensor": _optional_tensor,
    "as_int": read_int,
    "as_float": read_float,
    "as_complex": _complex,
    "as_bool": _bool,
    "as_string": _string,
    "as_sym_int": _symbolic,
    "as_sym_float": _symbolic,
    "as_sym_bool": _symbolic,
    "as_scalar_type": read_dtype,
    "as_device": _device,
    "as_layout": _enumeration(_LAYOUTS, "layout"),
    "as_memory_format": _enumeration(_MEMORY_FORMATS, "memory format"),
}
_LISTS: dict[str, _Reader] = {
    "as_tensors": _tensor,
    "as_optional_tensors": _optional_tensor,
    "as_nested_tensors": _list_of(_tensor),
    "as_ints": read_int,
    "as_int_lists": _list_of(read_int),
    "as_floats": read_float,
    "as_float_lists": _list_of(read_float),
    "as_bools": _bool,
    "as_strings": _string,
    "as_sym_ints": _symbolic,
    "as_sym_floats": _symbolic,
    "as_sym_bools": _symbolic,
}


def is_graph(data: Json) -> bool:
    """Whether an argument is a graph (of a higher-order op)."""
    return isinstance(data, dict) and "as_graph" in data
