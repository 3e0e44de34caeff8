"""RDNA's matrix instructions (WMMA): gfx11, where lanes hold A and B twice, and gfx12.

Sums are as in ``matrix.py``. Waves of 32 and 64 lanes share a name; the operands' lanes tell them
apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from scheduler.isa.rocm.emulator.alu.elements import ELEMENTS, Element, unpack_codes
from scheduler.isa.rocm.emulator.alu.matrix import Product
from scheduler.isa.rocm.emulator.alu.matrix_layouts import wmma_input, wmma_result
from scheduler.isa.rocm.emulator.alu.row import Bits, BlockRow, Lanes, Modifiers
from scheduler.targets.amd import Feature

_FLOATS = ("f16", "bf16")


@cache
def _product(k: int, lanes: int, wmma: Feature, result: str) -> Product:
    places = wmma_input(k, lanes, wmma)
    return Product(places, places, wmma_result(lanes, wmma), result)


def _flags(modifiers: Modifiers, name: str) -> tuple[int, ...]:
    return (*modifiers.get(name, ()), 0, 0, 0)[:3]


def _operand(block: Bits, element: Element, low: int, high: int) -> Lanes:
    """Return values of A or B, with the lower and upper halves of registers negated if
    requested."""
    values = element.decode(unpack_codes(block, element.bits))
    if element.bits == 16 and (low or high):
        signs = np.where(np.arange(values.shape[1]) % 2, -1.0 if high else 1, -1.0 if low else 1)
        values = values * signs[:, None]
    return values


def _wide(name: str, k: int, wmma: Feature, result: str) -> Callable[..., Bits]:
    """32-bit results."""

    def compute(a: Bits, b: Bits, c: Bits, *, modifiers: Modifiers) -> Bits:
        low, high = _flags(modifiers, "neg_lo"), _flags(modifiers, "neg_hi")
        product = _product(k, a.shape[-1], wmma, result)
        if result == "i32":
            # neg_lo says which of A and B are signed.
            signed = [ELEMENTS[f"{'i' if flag else 'u'}{name}"] for flag in low[:2]]
            left, right = (
                each.decode(unpack_codes(block, each.bits))
                for each, block in zip(signed, (a, b), strict=True)
            )
            return product.multiply(left, right, c)
        elements = [ELEMENTS[each] for each in name.split("_")]
        left = _operand(a, elements[0], low[0], high[0])
        right = _operand(b, elements[-1], low[1], high[1])
        if high[2]:
            c = c & np.uint32(0x7FFFFFFF)
        if low[2]:
            c = c ^ np.uint32(0x80000000)
        return product.multiply(left, right, c)

    return compute


def _narrow(name: str, wmma: Feature) -> Callable[..., Bits]:
    """16-bit results: on gfx11 one per register, in the half that ``op_sel`` selects, with the
    other half from C; on gfx12 two per register."""

    def compute(a: Bits, b: Bits, c: Bits, *, modifiers: Modifiers) -> Bits:
        low, high = _flags(modifiers, "neg_lo"), _flags(modifiers, "neg_hi")
        product = _product(16, a.shape[-1], wmma, name)
        left = _operand(a, ELEMENTS[name], low[0], high[0])
        right = _operand(b, ELEMENTS[name], low[1], high[1])
        if wmma is Feature.WMMA_RDNA4:
            return product.multiply(left, right, c)
        upper = np.uint32(16 * _flags(modifiers, "op_sel")[2])
        halves = (c >> upper) & np.uint32(0xFFFF)
        pairs = halves[:, ::2] | (halves[:, 1::2] << np.uint32(16))
        result = unpack_codes(product.multiply(left, right, pairs), 16)
        kept = c & ~(np.uint32(0xFFFF) << upper)
        return np.asarray(kept | (result.astype(np.uint32) << upper), dtype=np.uint32)

    return compute


def _row(
    text: str, wmma: Feature, inputs: int, results: int, compute: Callable[..., Bits]
) -> BlockRow:
    return BlockRow(
        f"v_wmma_{text}",
        results,
        (inputs, inputs, results),
        compute,
        needs=wmma,
    )


def _rows(wmma: Feature) -> Iterator[BlockRow]:
    """Register counts are for waves of 32 lanes."""
    share = 1 if wmma is Feature.WMMA_RDNA3 else 2
    for element in _FLOATS:
        compute = _wide(element, 16, wmma, "f32")
        yield _row(f"f32_16x16x16_{element}", wmma, 8 // share, 8, compute)
        own = _narrow(element, wmma)
        yield _row(f"{element}_16x16x16_{element}", wmma, 8 // share, 8 // share, own)
    for bits, k in ((8, 16), (4, 16), (4, 32)):
        if k == 16 or wmma is Feature.WMMA_RDNA4:
            compute = _wide(str(bits), k, wmma, "i32")
            inputs = k * bits // 32 // share
            yield _row(f"i32_16x16x{k}_iu{bits}", wmma, inputs, 8, compute)
    if wmma is Feature.WMMA_RDNA4:
        for a in ("fp8", "bf8"):
            for b in ("fp8", "bf8"):
                compute = _wide(f"{a}_{b}", 16, wmma, "f32")
                yield _row(f"f32_16x16x16_{a}_{b}", wmma, 2, 8, compute)


ROWS = (*_rows(Feature.WMMA_RDNA3), *_rows(Feature.WMMA_RDNA4))
