"""AMD's matrix instructions: MFMA of gfx90a, gfx942 and gfx950, dense and sparse.

Products are summed in float64 (integers: exactly) and rounded once, where the hardware rounds now
and then: results differ by the rounding of a few sums. gfx90a's flush denormals of f16 and bf16.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from scheduler.isa.rocm.emulator.alu.elements import (
    ELEMENTS,
    FLUSHED,
    FNUZ,
    Element,
    encoded,
    items,
    registers,
)
from scheduler.isa.rocm.emulator.alu.matrix_layouts import (
    InputPlaces,
    ResultPlaces,
    mfma_input,
    mfma_result,
)
from scheduler.isa.rocm.emulator.alu.row import Bits, Block, Lanes, Modifiers

_GFX90A = ("gfx90a",)
_GFX942 = ("gfx940", "gfx941", "gfx942")
_GFX950 = ("gfx950",)
# What BLGP says of the lane that a value of B is read from.
_PERMUTATIONS: tuple[Callable[[Lanes], Lanes], ...] = (
    lambda lane: lane,
    lambda lane: lane % 32,
    lambda lane: lane % 32 + 32,
    lambda lane: (lane + 16) % 64,
    *(lambda lane, at=at: lane % 16 + at for at in (0, 16, 32, 48)),
)
_LANES = np.arange(64)


@dataclass(frozen=True)
class Product:
    """D = A B + C: where the elements lie, and what they are."""

    a: InputPlaces
    b: InputPlaces
    d: ResultPlaces
    result: str
    flush: bool = False

    def of(self, a: Lanes, b: Lanes, c: Bits) -> Bits:
        """``a`` and ``b`` as values [waves, items, lanes], ``c`` as registers."""
        width = ELEMENTS[self.result].bits
        left = a[:, self.a.item, self.a.lane]
        right = b[:, self.b.item, self.b.lane]
        product = np.matmul(left, right.swapaxes(-1, -2))
        summed = product[:, self.d.block, self.d.row, self.d.column]
        summed = summed + ELEMENTS[self.result].decode(items(c, width))
        if self.flush:
            summed = np.where(np.abs(summed) < 2.0**-126, 0.0, summed)
        return registers(encoded(summed, self.result), width)


def one(modifiers: Modifiers, name: str) -> int:
    """A modifier of one number; 0 where it is not written."""
    return modifiers.get(name, (0,))[0]


def _mfma_compute(product: Product, element: Element, other: Element) -> Callable[..., Bits]:
    double = element.bits == 64

    def compute(a: Bits, b: Bits, c: Bits, *, modifiers: Modifiers) -> Bits:
        left = element.decode(items(a, element.bits))
        right = other.decode(items(b, other.bits))
        if double:
            signs = [-1.0 if flag else 1.0 for flag in _negated(modifiers)]
            accumulator = c
            if signs[2] < 0:
                accumulator = c.copy()
                accumulator[:, 1::2] ^= np.uint32(0x80000000)
            return product.of(left * signs[0], right * signs[1], accumulator)
        size = 64 >> one(modifiers, "cbsz")
        if size < 64:
            left = left[:, :, _LANES % size + size * one(modifiers, "abid")]
        if one(modifiers, "blgp"):
            right = right[:, :, _PERMUTATIONS[one(modifiers, "blgp")](_LANES)]
        return product.of(left, right, c)

    return compute


def _negated(modifiers: Modifiers) -> tuple[int, ...]:
    """Of f64: ``neg:[a,b,c]``, or BLGP's bits."""
    if "neg" in modifiers:
        return modifiers["neg"]
    bits = one(modifiers, "blgp")
    return (bits & 1, bits >> 1 & 1, bits >> 2 & 1)


def _dense(
    name: str,
    shape: tuple[int, int, int, int],
    elements: tuple[str, str],
    result: str,
    processors: tuple[str, ...] = (),
    formats: Mapping[str, Element] | None = None,
) -> Block:
    m, n, k, blocks = shape
    formats = formats or {}
    product = Product(
        mfma_input(m, k, blocks),
        mfma_input(n, k, blocks),
        mfma_result(m, n, blocks, 1 if result == "f64" else 4),
        result,
        flush=formats is FLUSHED,
    )
    a, b = (formats.get(each, ELEMENTS[each]) for each in elements)
    size = m * n * blocks // 64 * ELEMENTS[result].bits // 32
    inputs = (m * k * blocks * a.bits // 2048, n * k * blocks * b.bits // 2048)
    return Block(name, size, (*inputs, size), _mfma_compute(product, a, b), processors=processors)


# Rows, columns, k and blocks, by the type that instructions are named with.
_SHAPES: Mapping[str, tuple[tuple[int, int, int, int], ...]] = {
    "f32": ((32, 32, 1, 2), (16, 16, 1, 4), (4, 4, 1, 16), (32, 32, 2, 1), (16, 16, 4, 1)),
    "f16": ((32, 32, 4, 2), (16, 16, 4, 4), (4, 4, 4, 16), (32, 32, 8, 1), (16, 16, 16, 1)),
    "bf16": ((32, 32, 2, 2), (16, 16, 2, 4), (4, 4, 2, 16), (32, 32, 4, 1), (16, 16, 8, 1)),
    "bf16_1k": ((32, 32, 4, 2), (16, 16, 4, 4), (4, 4, 4, 16), (32, 32, 8, 1), (16, 16, 16, 1)),
    "i8": ((32, 32, 4, 2), (16, 16, 4, 4), (4, 4, 4, 16), (32, 32, 8, 1), (16, 16, 16, 1)),
    "f64": ((16, 16, 4, 1), (4, 4, 4, 4)),
}


def _named(shape: tuple[int, int, int, int]) -> str:
    return "x".join(map(str, shape[:3]))


def _old_rows() -> Iterator[Block]:
    """Those that gfx90a has, in its spelling."""
    for suffix, shapes in _SHAPES.items():
        element = suffix.removesuffix("_1k")
        result = {"i8": "i32", "f64": "f64"}.get(element, "f32")
        for shape in shapes:
            name = f"v_mfma_{result}_{_named(shape)}{suffix}"
            pair = (element, element)
            if element in FLUSHED:
                yield _dense(name, shape, pair, result, _GFX90A, FLUSHED)
                yield _dense(name, shape, pair, result, ("gfx908", "gfx94", "gfx95"))
            else:
                yield _dense(name, shape, pair, result)


def _spellings() -> dict[str, str]:
    """From gfx940's spelling to the one before."""
    found = {}
    for suffix, shapes in _SHAPES.items():
        element = suffix.removesuffix("_1k")
        result = {"i8": "i32", "f64": "f64"}.get(element, "f32")
        if suffix == "bf16":
            continue  # gfx940 has them no more: its names are the later ones'
        for shape in shapes:
            blocks = f"_{shape[3]}b" if shape[3] > 1 else ""
            new = f"v_mfma_{result}_{_named(shape)}{blocks}_{element}"
            found[new] = f"v_mfma_{result}_{_named(shape)}{suffix}"
    return found


SPELLINGS: Mapping[str, str] = _spellings()
_EIGHT = ("bf8", "fp8")


def _new_rows() -> Iterator[Block]:
    """Since gfx942, and gfx950."""
    for (shape,) in ((32, 32, 4, 1),), ((16, 16, 8, 1),):
        yield _dense(f"v_mfma_f32_{_named(shape)}_xf32", shape, ("xf32",) * 2, "f32", _GFX942)
    for (shape,) in ((32, 32, 16, 1),), ((16, 16, 32, 1),):
        yield _dense(f"v_mfma_i32_{_named(shape)}_i8", shape, ("i8", "i8"), "i32")
        for a in _EIGHT:
            for b in _EIGHT:
                name = f"v_mfma_f32_{_named(shape)}_{a}_{b}"
                yield _dense(name, shape, (a, b), "f32", _GFX942, FNUZ)
                yield _dense(name, shape, (a, b), "f32", _GFX950)
    for (shape,) in ((32, 32, 16, 1),), ((16, 16, 32, 1),):
        for element in ("f16", "bf16"):
            name = f"v_mfma_f32_{_named(shape)}_{element}"
            yield _dense(name, shape, (element, element), "f32", _GFX950)
    for (shape,) in ((32, 32, 32, 1),), ((16, 16, 64, 1),):
        yield _dense(f"v_mfma_i32_{_named(shape)}_i8", shape, ("i8", "i8"), "i32", _GFX950)


ROWS = (*_old_rows(), *_new_rows())
