"""Parses a launch: JSON of ``schema.json``, validated first."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from scheduler.cycles.launches.contents import DTYPES, pack_values
from scheduler.errors import UserError
from scheduler.ir.dtypes import DType

MOST_BYTES = 1 << 20  # of the text
MOST_ARGUMENTS = 1024  # as in the schema
MOST_THREADS = 1024  # of a block
_MOST_BUFFER = 1 << 40
_SCHEMA = Path(__file__).with_name("schema.json")


@dataclass(frozen=True)
class Buffer:
    """The memory of an argument: random integers ``below`` a number, with ``values`` at its
    start."""

    dtype: DType
    elements: int
    below: int | None = None
    values: tuple[float, ...] = ()

    @property
    def bytes(self) -> int:
        return self.elements * self.dtype.itemsize


@dataclass(frozen=True)
class BufferAlias:
    """The memory of another argument, at a byte offset."""

    argument: int | str
    offset_bytes: int = 0


@dataclass(frozen=True)
class StructNumber:
    """A number in a structure, as its bytes."""

    data: bytes


Pointer = Buffer | BufferAlias | None
"""Memory, or the null pointer."""

Member = StructNumber | bytes | Pointer
"""A member of a structure; bytes are not aligned."""


@dataclass(frozen=True)
class Struct:
    """A structure passed by value, its members aligned as in C."""

    members: tuple[Member, ...]


Argument = int | float | Pointer | tuple[int | float, ...] | bytes | Struct
"""A by-value number, a pointer, or a structure: numbers of one size, bytes, or its members."""


@dataclass(frozen=True)
class LaunchSpec:
    """A parsed launch. ``arguments`` are by position, or by name with the value of the ``others``
    (None: all must be named)."""

    function: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_lds_bytes: int
    arguments: tuple[Argument, ...] | Mapping[str, Argument]
    others: int | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)


def read_launch(content: str | bytes, what: str = "launch") -> LaunchSpec:
    """Parse a launch. Raises ``UserError`` naming the wrong field."""
    if len(content) > MOST_BYTES:
        raise UserError(f"{what}: larger than {MOST_BYTES >> 20} MiB")
    try:
        data = json.loads(content, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{what}: not valid JSON: {error}") from None
    for invalid in validator().iter_errors(data):
        raise UserError(f"{what}: {_describe_error(invalid)}")
    block = _dim3(data["block"])
    if math.prod(block) > MOST_THREADS:
        raise UserError(f"{what}: block: {math.prod(block)} threads; the limit is {MOST_THREADS}")
    entries = data["arguments"]
    arguments: tuple[Argument, ...] | dict[str, Argument]
    if isinstance(entries, list):
        arguments = tuple(
            _argument(f"{what}: arguments[{i}]", entry) for i, entry in enumerate(entries)
        )
        if "others" in data:
            raise UserError(f"{what}: others: for named arguments only")
    else:
        arguments = {
            name: _argument(f"{what}: arguments.{name}", entries[name]) for name in entries
        }
    return LaunchSpec(
        data.get("function", ""),
        _dim3(data["grid"]),
        block,
        data.get("dynamic_lds_bytes", 0),
        arguments,
        data.get("others"),
        data.get("sizes", {}),
    )


@cache
def validator() -> Any:
    """Return the schema's validator."""
    import jsonschema  # noqa: PLC0415 -- takes a second where checkers of formats are installed too

    return jsonschema.Draft202012Validator(json.loads(_SCHEMA.read_text()))


def _describe_error(error: Any) -> str:
    if list(error.absolute_path) == ["arguments"] and error.context:
        # The error of the wrong argument, for arguments as a list or by name.
        error = max(error.context, key=lambda part: len(part.absolute_path))
    path = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path
    )
    prefix = f"{path.removeprefix('.')}: " if path else ""
    if error.validator != "oneOf":
        return f"{prefix}{error.message}"
    return (
        f'{prefix}an argument is a number, null, {{"buffer": "float16", "elements": 1024}},'
        ' {"same_as": 0}, or a structure: [8, 8, 1], {"bytes": "0800"},'
        ' {"struct": [{"type": "int32", "value": 8}]}'
    )


def _argument(at: str, value: Any) -> Argument:
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, list):
        return tuple(value)
    if "struct" in value:
        members = enumerate(value["struct"])
        return Struct(tuple(_member(f"{at}.struct[{place}]", member) for place, member in members))
    return _bytes(at, value) if "bytes" in value else _pointer(at, value)


def _member(at: str, value: Any) -> Member:
    if value is None:
        return None
    if "type" not in value:
        return _bytes(at, value) if "bytes" in value else _pointer(at, value)
    dtype = _dtype(at, value["type"])
    if dtype.is_complex:
        raise UserError(f"{at}: write a complex number as two members")
    try:
        return StructNumber(pack_values(dtype, [value["value"]]))
    except ValueError as error:
        raise UserError(f"{at}: {error}") from None


def _bytes(at: str, value: Any) -> bytes:
    try:
        return bytes.fromhex(value["bytes"])
    except ValueError:
        raise UserError(f"{at}: bytes: not pairs of hexadecimal digits") from None


def _dtype(at: str, name: str) -> DType:
    dtype = DTYPES.get(name)
    if dtype is None:
        raise UserError(f"{at}: unknown type {name}; known: {', '.join(DTYPES)}")
    return dtype


def _pointer(at: str, value: Any) -> Buffer | BufferAlias:
    if "same_as" in value:
        return BufferAlias(value["same_as"], value.get("offset_bytes", 0))
    if ("elements" in value) == ("shape" in value):
        raise UserError(f"{at}: give either elements or shape")
    elements = value.get("elements") or math.prod(value["shape"])
    values = tuple(value.get("values", ()))
    buffer = Buffer(_dtype(at, value["buffer"]), elements, value.get("below"), values)
    if buffer.bytes > _MOST_BUFFER:
        raise UserError(f"{at}: larger than {_MOST_BUFFER >> 40} TiB")
    if len(values) > elements:
        raise UserError(f"{at}: {len(values)} values for {elements} elements")
    if buffer.below is not None and buffer.dtype.is_inexact:
        raise UserError(f"{at}: below: for integers only")
    return buffer


def _dim3(sizes: list[int]) -> tuple[int, int, int]:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _reject_constant(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")
