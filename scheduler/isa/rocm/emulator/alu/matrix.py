"""AMD's matrix instructions: MFMA of gfx90a, gfx942 and gfx950, dense and sparse.

Products are summed in float64 (integers: exactly) and rounded once, whereas the hardware rounds
intermediate sums: results differ by the rounding of a few sums. gfx90a's f16 and bf16 instructions
flush denormals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scheduler.isa.rocm.emulator.alu.elements import (
    ELEMENTS,
    FLUSHED,
    FNUZ,
    Element,
    encode_values,
    pack_codes,
    unpack_codes,
)
from scheduler.isa.rocm.emulator.alu.matrix_layouts import (
    InputPlaces,
    ResultPlaces,
    mfma_input,
    mfma_result,
)
from scheduler.isa.rocm.emulator.alu.row import Bits, BlockRow, Lanes, Modifiers
from scheduler.isa.rocm.instruction_set.matrix import MatrixShape, matrix_shape
from scheduler.isa.rocm.instruction_set.spellings import GFX90A_MFMA
from scheduler.targets.amd import Feature

# BLGP's lane permutations for reading B.
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
    """D = A B + C: the positions of the elements, and their types."""

    a: InputPlaces
    b: InputPlaces
    d: ResultPlaces
    result: str
    flush: bool = False

    @cached_property
    def _places(self) -> tuple[Lanes, Lanes, Lanes]:
        """The positions of A's and B's elements among a wave's items, and of the results in the
        product."""
        lanes = self.d.row.shape[1]
        _, rows, _ = self.a.item.shape
        columns = self.b.item.shape[1]
        result_positions = (self.d.block * rows + self.d.row) * columns + self.d.column
        return (
            self.a.item * lanes + self.a.lane,
            self.b.item * lanes + self.b.lane,
            result_positions,
        )

    def multiply(self, a: Lanes, b: Lanes, c: Bits) -> Bits:
        """Multiply ``a`` and ``b``, values [waves, items, lanes], and add ``c``, registers."""
        width = ELEMENTS[self.result].bits
        waves = len(a)
        from_a, from_b, result_positions = self._places
        left = a.reshape(waves, -1).take(from_a, axis=1)
        right = b.reshape(waves, -1).take(from_b, axis=1)
        product = np.matmul(left, right.swapaxes(-1, -2))
        summed = product.reshape(waves, -1).take(result_positions, axis=1)
        summed = summed + ELEMENTS[self.result].decode(unpack_codes(c, width))
        if self.flush:
            summed = np.where(np.abs(summed) < 2.0**-126, 0.0, summed)
        return pack_codes(encode_values(summed, self.result), width)


def modifier_number(modifiers: Modifiers, name: str) -> int:
    """Return a modifier's single number; 0 if it is absent."""
    return modifiers.get(name, (0,))[0]


def _mfma_compute(product: Product, element: Element, other: Element) -> Callable[..., Bits]:
    double = element.bits == 64

    def compute(a: Bits, b: Bits, c: Bits, *, modifiers: Modifiers) -> Bits:
        left = element.decode(unpack_codes(a, element.bits))
        right = other.decode(unpack_codes(b, other.bits))
        if double:
            blgp = modifier_number(modifiers, "blgp")  # f64's negations, if neg:[a,b,c] is absent
            negated = modifiers.get("neg", (blgp & 1, blgp >> 1 & 1, blgp >> 2 & 1))
            signs = [-1.0 if flag else 1.0 for flag in negated]
            accumulator = c
            if signs[2] < 0:
                accumulator = c.copy()
                accumulator[:, 1::2] ^= np.uint32(0x80000000)
            return product.multiply(left * signs[0], right * signs[1], accumulator)
        size = 64 >> modifier_number(modifiers, "cbsz")
        if size < 64:
            left = left[:, :, _LANES % size + size * modifier_number(modifiers, "abid")]
        if modifier_number(modifiers, "blgp"):
            right = right[:, :, _PERMUTATIONS[modifier_number(modifiers, "blgp")](_LANES)]
        return product.multiply(left, right, c)

    return compute


def _shape_of(name: str) -> MatrixShape:
    shape = matrix_shape(name)
    assert shape is not None, name
    return shape


def _dense(
    name: str, needs: Feature | None = None, formats: Mapping[str, Element] = ELEMENTS
) -> BlockRow:
    """``formats`` are the elements that differ from ``ELEMENTS``."""
    shape = _shape_of(name)
    m, n, k, blocks, result = shape.m, shape.n, shape.k, shape.blocks, shape.result
    product = Product(
        mfma_input(m, k, blocks),
        mfma_input(n, k, blocks),
        mfma_result(m, n, blocks, 1 if result == "f64" else 4),
        result,
        flush=formats is FLUSHED,
    )
    a, b = (formats.get(element, ELEMENTS[element]) for element in shape.elements)
    size = m * n * blocks // 64 * ELEMENTS[result].bits // 32
    inputs = (m * k * blocks * a.bits // 2048, n * k * blocks * b.bits // 2048)
    return BlockRow(name, size, (*inputs, size), _mfma_compute(product, a, b), needs=needs)


_EIGHT_BITS = [f"{a}_{b}" for a in ("bf8", "fp8") for b in ("bf8", "fp8")]


def _select_formats(m: int, n: int, k: int) -> Callable[..., Bits]:
    """gfx950: CBSZ and BLGP give the formats of A and B. With scales, there is an exponent for each
    32 k of a row, in the byte of a lane's register that ``op_sel`` and ``op_sel_hi`` select."""
    products = {
        (left, right): Product(
            mfma_input(m, k, 1, left), mfma_input(n, k, 1, right), mfma_result(m, n, 1, 4), "f32"
        )
        for left in (16, 32)
        for right in (16, 32)
    }
    scale_lane = np.arange(m)[:, None] + m * (np.arange(k) // 32)

    def compute(a: Bits, b: Bits, c: Bits, *scales: Bits, modifiers: Modifiers) -> Bits:
        names = [_SMALL[min(modifier_number(modifiers, name), 4)] for name in ("cbsz", "blgp")]
        elements = [ELEMENTS[name] for name in names]
        values = [
            element.decode(unpack_codes(block[:, : element.bits], element.bits))
            for element, block in zip(elements, (a, b), strict=True)
        ]
        # Elements of 8 bits form two runs of 16, smaller ones one of 32.
        left, right = (16 if element.bits == 8 else 32 for element in elements)
        product = products[left, right]
        for number, scale in enumerate(scales):
            byte = _select(modifiers, "op_sel", number) + 2 * _select(
                modifiers, "op_sel_hi", number
            )
            exponent = ((scale[:, 0] >> np.uint32(8 * byte)) & np.uint32(0xFF)).astype(np.int64)
            factor = np.where(exponent == 255, np.nan, np.ldexp(1.0, exponent - 127))
            input_layout = product.b if number else product.a
            scaled = values[number].copy()
            scaled[:, input_layout.item[0], input_layout.lane[0]] *= factor[:, scale_lane]
            values[number] = scaled
        return product.multiply(values[0], values[1], c)

    return compute


_SMALL = ("fp8", "bf8", "fp6", "bf6", "fp4")


def _select(modifiers: Modifiers, name: str, number: int) -> int:
    return (*modifiers.get(name, ()), 0, 0)[number]


def _sparse(
    name: str,
    needs: Feature = Feature.SPARSE_MFMA,
    formats: Mapping[str, Element] = ELEMENTS,
) -> BlockRow:
    """A stores two of every four k; their positions take two bits each, in the part of a register
    that CBSZ and ABID select. The old result is added."""
    shape = _shape_of(name)
    m, n, k = shape.m, shape.n, shape.k
    a, b = (formats.get(element, ELEMENTS[element]) for element in shape.elements)
    product = Product(
        mfma_input(m, k, 1), mfma_input(n, k, 1), mfma_result(m, n, 1, 4), shape.result
    )
    per_lane = k * m // 128  # elements of A per lane
    first = 4 * (np.arange(per_lane) // 2)
    size = m * n // 64

    def compute(left: Bits, right: Bits, index: Bits, old: Bits, *, modifiers: Modifiers) -> Bits:
        part = 0 if modifier_number(modifiers, "cbsz") else modifier_number(modifiers, "abid")
        bits = index[:, 0] >> np.uint32(part * 2 * per_lane)
        shifts = (2 * np.arange(per_lane, dtype=np.uint32))[:, None]
        places = first[:, None] + ((bits[:, None] >> shifts) & np.uint32(3)).astype(np.intp)
        stored = a.decode(unpack_codes(left, a.bits))
        dense = np.zeros((stored.shape[0], 2 * per_lane, 64), stored.dtype)
        np.put_along_axis(dense, places, stored, axis=1)
        return product.multiply(dense, b.decode(unpack_codes(right, b.bits)), old)

    inputs = (per_lane * a.bits // 32, 2 * per_lane * b.bits // 32, 1)
    return BlockRow(name, size, inputs, compute, reads_old=True, needs=needs)


def _dense_rows() -> Iterator[BlockRow]:
    """Yield the instructions of gfx90a, in its spelling, then those added in gfx942 and gfx950."""
    for name in GFX90A_MFMA:
        if _shape_of(name).elements[0] in FLUSHED:
            yield _dense(name, Feature.MFMA_FLUSHES_DENORMALS, FLUSHED)
            yield _dense(name, Feature.MFMA_DENORMALS)
        else:
            yield _dense(name)
    for shape in ("32x32x4", "16x16x8"):
        yield _dense(f"v_mfma_f32_{shape}_xf32", Feature.XF32)
    for shape in ("32x32x16", "16x16x32"):
        yield _dense(f"v_mfma_i32_{shape}_i8")
        for pair in _EIGHT_BITS:
            yield _dense(f"v_mfma_f32_{shape}_{pair}", Feature.FNUZ_FLOAT8, FNUZ)
            yield _dense(f"v_mfma_f32_{shape}_{pair}", Feature.CDNA4)
        for element in ("f16", "bf16"):
            yield _dense(f"v_mfma_f32_{shape}_{element}", Feature.CDNA4)
    for shape in ("32x32x32", "16x16x64"):
        yield _dense(f"v_mfma_i32_{shape}_i8", Feature.CDNA4)
    for shape in ("16x16x128", "32x32x64"):
        m, n, k = map(int, shape.split("x"))
        size = m * n // 64
        compute = _select_formats(m, n, k)
        for name, sources in (("mfma", (8, 8, size)), ("mfma_scale", (8, 8, size, 1, 1))):
            text = f"v_{name}_f32_{shape}_f8f6f4"
            yield BlockRow(text, size, sources, compute, needs=Feature.CDNA4)


def _sparse_rows() -> Iterator[BlockRow]:
    """Yield gfx942's instructions, which gfx950 also has; gfx950's own, with twice the k, have
    another layout, which is not known."""
    for shape in ("16x16x32", "32x32x16"):
        for element in ("f16", "bf16"):
            yield _sparse(f"v_smfmac_f32_{shape}_{element}")
    for shape in ("16x16x64", "32x32x32"):
        yield _sparse(f"v_smfmac_i32_{shape}_i8")
        for pair in _EIGHT_BITS:
            yield _sparse(f"v_smfmac_f32_{shape}_{pair}", Feature.FNUZ_FLOAT8, FNUZ)
            yield _sparse(f"v_smfmac_f32_{shape}_{pair}", Feature.CDNA4)


ROWS = (*_dense_rows(), *_sparse_rows())
