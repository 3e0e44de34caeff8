"""Shapes of real models, from a file: each a problem of one kernel."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from scheduler.errors import UserError
from scheduler.fusion.nodes import Schedule
from tests.support.families import attention, convolution, linear, rows

FILE = Path(__file__).with_name("shapes.toml")


@dataclass(frozen=True)
class Shape:
    """``of`` says which model, and where in it."""

    kind: str
    of: str
    sizes: Mapping[str, int]

    @property
    def name(self) -> str:
        """As tables have it."""
        return f"{self.kind.replace('_', ' ')} {'x'.join(map(str, self.sizes.values()))}"

    @property
    def title(self) -> str:
        """With the model that it is of: no two shapes have the same."""
        return f"{self.name}, {self.of}"

    def plan(self) -> Schedule:
        """The problem, in f16."""
        return _KINDS[self.kind].plan(**self.sizes)


@dataclass(frozen=True)
class _Kind:
    sizes: tuple[str, ...]
    plan: Callable[..., Schedule]


def _attention(batch: int, heads: int, queries: int, keys: int, depth: int) -> Schedule:
    asked = None if queries == keys else queries
    return attention(batch, heads, keys, depth, queries=asked)


def _convolution(images: int, channels: int, side: int, filters: int, kernel: int) -> Schedule:
    return convolution(images, channels, side, filters, kernel)


def _of_rows(target: str, *args: object) -> _Kind:
    return _Kind(("rows", "columns"), lambda rows, columns: _rows(target, rows, columns, *args))


def _rows(target: str, count: int, columns: int, *args: object) -> Schedule:
    return rows(target, (count, columns), *args)


def _normed(target: str, *after: object) -> _Kind:
    return _Kind(
        ("rows", "columns"),
        lambda rows, columns: _rows(target, rows, columns, [columns], *after),
    )


_KINDS: Mapping[str, _Kind] = {
    "gemm": _Kind(("m", "n", "k"), linear),
    "attention": _Kind(("batch", "heads", "queries", "keys", "depth"), _attention),
    "convolution": _Kind(("images", "channels", "side", "filters", "kernel"), _convolution),
    "softmax": _of_rows("aten.softmax.int", -1),
    "layer_norm": _normed("aten.layer_norm.default", None, None, 1e-5),
    "rms_norm": _normed("aten.rms_norm.default", None, 1e-5),
    "gelu": _of_rows("aten.gelu.default"),
    "silu": _of_rows("aten.silu.default"),
}


def read(file: Path = FILE) -> tuple[Shape, ...]:
    """In the file's order. ``UserError`` for a kind that is not known, or sizes that it lacks."""
    try:
        data = tomllib.loads(file.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{file}: {error}") from None
    found = []
    for kind, entries in data.items():
        if kind not in _KINDS:
            raise UserError(f"{file}: no kind {kind}; there are {', '.join(_KINDS)}")
        for number, entry in enumerate(entries):
            wanted = _KINDS[kind].sizes
            sizes = {name: entry.get(name) for name in wanted}
            wrong = [name for name, size in sizes.items() if type(size) is not int or size < 1]
            if wrong or set(entry) != {"of", *wanted}:
                said = ", ".join(("of", *wanted))
                raise UserError(f"{file}: {kind} {number + 1}: it has {said}, sizes from 1")
            found.append(Shape(kind, entry["of"], sizes))
    return tuple(found)
