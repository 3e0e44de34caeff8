"""JSON conversion of frozen dataclasses: the converter and the rules common to all files.

Expressions over sizes and guards are text, element types their labels, tuples lists.
Reading does not convert types: a number instead of a text is an error, and so is a missing field. A
file declares the names that differ from its dataclasses (``rename_fields``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache, lru_cache
from typing import Any, TypeVar, get_args, get_origin

import sympy
from cattrs import BaseValidationError, Converter, IterableValidationError, transform_error
from cattrs.cols import homogenous_tuple_structure_factory
from cattrs.errors import IterableValidationNote
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override
from cattrs.v import format_exception

from scheduler.errors import UserError
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Guard
from scheduler.ir.guards import parse_guard, print_guard
from scheduler.ir.index.text import parse_expr, print_expr

T = TypeVar("T")
_MAX_ERROR_LENGTH = 200  # characters of an error that a file can cause
_REPEATED = 4096  # expressions remembered: files repeat a few often


def make_codec() -> Converter:
    """Return a converter, to which a file adds its own rules."""
    codec = Converter(unstruct_collection_overrides={tuple: list})
    for kind in (int, float, str, bool):
        codec.register_structure_hook(kind, _strict)
    codec.register_structure_hook(int | str | bool, _config_value)
    codec.register_structure_hook_factory(_is_tuple, _tuple_reader)
    parse = lru_cache(_REPEATED)(parse_expr)
    codec.register_unstructure_hook(sympy.Expr, lru_cache(_REPEATED)(print_expr))
    codec.register_structure_hook(sympy.Expr, lambda text, _: parse(_strict(text, str)))
    codec.register_unstructure_hook(Guard, print_guard)
    codec.register_structure_hook(Guard, lambda text, _: parse_guard(_strict(text, str)))
    codec.register_unstructure_hook(DType, lambda dtype: dtype.label)
    codec.register_structure_hook(DType, _dtype)
    return codec


@cache
def default_codec() -> Converter:
    """Return the converter without further rules."""
    return make_codec()


def rename_fields(
    codec: Converter,
    kind: type,
    names: Mapping[str, str] | None = None,
    *,
    omitted: tuple[str, ...] = (),
    where_default: tuple[str, ...] = (),
) -> None:
    """Register a dataclass whose fields have other names in JSON, are omitted from it, or are
    written only if they differ from their default."""
    fields = dict(names or {})
    writing: dict[str, Any] = {
        name: override(
            rename=fields.get(name),
            omit=name in omitted or None,
            omit_if_default=name in where_default or None,
        )
        for name in {*fields, *omitted, *where_default}
    }
    reading: dict[str, Any] = {name: override(rename=other) for name, other in fields.items()}
    codec.register_unstructure_hook(kind, make_dict_unstructure_fn(kind, codec, **writing))
    codec.register_structure_hook(kind, make_dict_structure_fn(kind, codec, **reading))


def key_by_name(codec: Converter, kind: type, names: Mapping[str, str] | None = None) -> None:
    """Register a dataclass for mappings by name, whose JSON does not repeat the name."""
    rename_fields(codec, kind, names, omitted=("name",))

    def read(data: Mapping[str, Any], _: object) -> dict[str, Any]:
        values, errors = dict[str, Any](), list[Exception]()
        for name, fields in data.items():
            try:
                values[name] = codec.structure({**fields, "name": name}, kind)
            except (BaseValidationError, TypeError) as error:
                error.add_note(IterableValidationNote("", name, kind))
                errors.append(error)
        if errors:
            raise IterableValidationError("", errors, kind)
        return values

    codec.register_structure_hook_func(lambda asked: asked == Mapping[str, kind], read)  # type: ignore[valid-type]


def decode(codec: Converter, data: Any, kind: type[T], what: str) -> T:
    """Read a value. Raises ``UserError`` with one line: ``what``, and the invalid field."""
    try:
        return codec.structure(data, kind)
    except BaseValidationError as error:
        first = transform_error(error, format_exception=_error_text)[0]
        raise UserError(f"{what}: {' '.join(first.split())[:_MAX_ERROR_LENGTH]}") from None
    except (UserError, TypeError, ValueError) as error:
        raise UserError(f"{what}: {' '.join(str(error).split())[:_MAX_ERROR_LENGTH]}") from None


def _strict(value: Any, kind: type) -> Any:
    if issubclass(kind, Enum):  # string enumerations, whose members are strings
        return kind(value)
    is_float = kind is float and type(value) is int and abs(value) <= sys.float_info.max
    if not (type(value) is kind or is_float):
        article = "an" if kind is int else "a"
        raise TypeError(f"{str(value)[:40]!r} is not {article} {kind.__name__}")
    return value


def _is_tuple(kind: Any) -> bool:
    return get_origin(kind) is tuple and get_args(kind)[-1:] == (...,)


def _tuple_reader(kind: Any, codec: Converter) -> Callable[[Any, Any], Any]:
    """Return cattrs' reader, which would also take the characters of a text and a mapping's
    keys."""
    read = homogenous_tuple_structure_factory(kind, codec)

    def read_list(data: Any, _: object) -> Any:
        if not isinstance(data, list | tuple):
            raise TypeError(f"{str(data)[:40]!r} is not a list")
        return read(data, kind)

    return read_list


def _dtype(value: Any, _: object) -> DType:
    try:
        return DType.from_label(_strict(value, str))
    except KeyError:
        raise ValueError(f"{value[:40]!r} is not an element type") from None


def _config_value(value: Any, _: object) -> int | str | bool:
    if not isinstance(value, int | str | bool):
        raise TypeError(f"{str(value)[:40]!r} is not a number, string or boolean")
    return value


def _error_text(error: BaseException, kind: type | None) -> str:
    if isinstance(error, UserError | TypeError | ValueError):
        return str(error)
    return format_exception(error, kind)
