"""Conversions to and from 8-, 6- and 4-bit floats, with and without a scale.

Sources: AMD CDNA3 ISA and CDNA4 ISA (V_CVT_PK_FP8_F32 …, V_CVT_SCALEF32_*), RDNA4 ISA. A scale is
the exponent of an f32: narrowing divides by that power of two, widening multiplies by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from scheduler.isa.rocm.emulator.alu.elements import (
    ELEMENTS,
    FNUZ,
    Element,
    encode_values,
    pack_codes,
    unpack_codes,
)
from scheduler.isa.rocm.emulator.alu.minifloat import FNUZ_FORMATS, FORMATS, MinifloatFormat
from scheduler.isa.rocm.emulator.alu.row import AluRow, Bits, BlockRow, Lanes, Modifiers, Type
from scheduler.targets.amd import Feature

_EIGHT = ("fp8", "bf8")
_SIX = ("fp6", "bf6")
_SOURCES = ("f32", "f16", "bf16")


def _select(modifiers: Modifiers, place: int) -> int:
    selects = modifiers.get("op_sel", ())
    return selects[place] if place < len(selects) else 0


def _insert_codes(codes: Lanes, width: int, old: Bits, modifiers: Modifiers) -> Bits:
    """Pack codes; if they do not fill the old register, insert them into a part of it."""
    size = codes.shape[1] * width
    if size % 32 == 0:
        return pack_codes(codes, width)
    packed = np.zeros_like(codes[:, 0], np.uint32)
    for number in range(codes.shape[1]):
        packed |= codes[:, number].astype(np.uint32) << np.uint32(number * width)
    # The last of ``op_sel`` selects a half, the last two (or ``byte_sel``) a byte.
    selects = modifiers.get("op_sel", ())
    if size == 16:
        first = 16 * (selects[-1] if len(selects) > 2 else 0)
    elif "byte_sel" in modifiers:
        first = 8 * modifiers["byte_sel"][0]
    else:
        first = 8 * (_select(modifiers, 2) + 2 * _select(modifiers, 3))
    at = np.uint32(first)
    mask = np.uint32((1 << size) - 1) << at
    result: Bits = (old[:, 0] & ~mask) | (packed << at)
    return result[:, None]


def _extract_part(block: Bits, size: int, modifiers: Modifiers) -> Bits:
    """Return the part of a register that ``op_sel`` (or ``byte_sel``) selects, in the low bits."""
    if size % 32 == 0:
        return block
    if "byte_sel" in modifiers:
        at = 8 * modifiers["byte_sel"][0]
    elif size == 16:
        at = 16 * _select(modifiers, 0)
    else:
        at = 8 * (_select(modifiers, 0) + 2 * _select(modifiers, 1))
    return block >> np.uint32(at)


def _factor(scale: Bits) -> Lanes:
    """Return 2**(exponent - 127) of the scale, NaN if the exponent is 255: [waves, 1, lanes]."""
    exponent = ((scale >> np.uint32(23)) & np.uint32(0xFF)).astype(np.int64)
    return np.where(exponent == 255, np.nan, np.ldexp(1.0, exponent - 127))


def _next_random(random: Lanes) -> Lanes:
    """V_PRNG_B32: a linear-feedback shift register."""
    feedback = np.where(random >> np.uint32(31), np.uint32(197), np.uint32(0))
    return np.asarray((random << np.uint32(1)) ^ feedback, dtype=np.uint32)


def _narrowing(
    form: MinifloatFormat, source: str, count: int, *, scaled: bool, random: bool
) -> Callable[..., Bits]:
    """Narrow ``count`` values of each source; two sources are interleaved."""

    def compute(*blocks: Bits, modifiers: Modifiers) -> Bits:
        *sources, old = blocks
        factor = _factor(sources.pop()) if scaled else None
        seed = sources.pop() if random else None
        element = ELEMENTS[source]
        decoded = [
            element.decode(unpack_codes(block, element.bits)[:, :count]) for block in sources
        ]
        values = np.stack(decoded, axis=2).reshape(decoded[0].shape[0], -1, old.shape[-1])
        if factor is not None:
            values = values / factor
        if seed is None:
            codes = form.round_nearest(values)
        else:
            randoms = [seed[:, 0]]  # one per value
            while len(randoms) < values.shape[1]:
                randoms.append(_next_random(randoms[-1]))
            codes = form.round_stochastic(values, np.stack(randoms, axis=1))
        return _insert_codes(codes, form.bits, old, modifiers)

    return compute


def _widening(element: Element, result: str, count: int, *, scaled: bool) -> Callable[..., Bits]:
    def compute(block: Bits, *rest: Bits, modifiers: Modifiers) -> Bits:
        part = _extract_part(block, element.bits * count, modifiers)
        values = element.decode(unpack_codes(part, element.bits)[:, :count])
        if scaled:
            values = values * _factor(rest[0])
        codes = encode_values(values, result)
        return _insert_codes(codes, ELEMENTS[result].bits, rest[-1], modifiers)

    return compute


def _unscaled_rows(
    formats: Mapping[str, MinifloatFormat],
    elements: Mapping[str, Element],
    needs: Feature,
) -> Iterator[BlockRow]:
    """Yield conversions without scale, available since gfx942."""
    for name in _EIGHT:
        form, element = formats[name], elements[name]
        nearest = _narrowing(form, "f32", 1, scaled=False, random=False)
        yield BlockRow(f"v_cvt_pk_{name}_f32", 1, (1, 1), nearest, True, needs)
        stochastic = _narrowing(form, "f32", 1, scaled=False, random=True)
        yield BlockRow(f"v_cvt_sr_{name}_f32", 1, (1, 1), stochastic, True, needs)
        if needs is Feature.OCP_FLOAT8:
            one, two = (_widening(element, "f32", count, scaled=False) for count in (1, 2))
            yield BlockRow(f"v_cvt_f32_{name}", 1, (1,), one, True, Feature.RDNA4_FLOAT8)
            yield BlockRow(f"v_cvt_pk_f32_{name}", 2, (1,), two, True, Feature.RDNA4_FLOAT8)


def _row(
    name: str, results: int, sources: tuple[int, ...], compute: Callable[..., Bits]
) -> BlockRow:
    return BlockRow(f"v_cvt_scalef32_{name}", results, sources, compute, True, Feature.CDNA4)


def _scaled_eight(name: str) -> Iterator[BlockRow]:
    form, element = FORMATS[name], ELEMENTS[name]
    yield _row(
        f"pk_{name}_f32", 1, (1, 1, 1), _narrowing(form, "f32", 1, scaled=True, random=False)
    )
    for source in _SOURCES:
        stochastic = _narrowing(form, source, 1, scaled=True, random=True)
        yield _row(f"sr_{name}_{source}", 1, (1, 1, 1), stochastic)
        pair = _widening(element, source, 2, scaled=True)
        yield _row(f"pk_{source}_{name}", 2 if source == "f32" else 1, (1, 1), pair)
        if source != "f32":
            packed = _narrowing(form, source, 2, scaled=True, random=False)
            yield _row(f"pk_{name}_{source}", 1, (1, 1), packed)
        if source != "bf16":
            yield _row(f"{source}_{name}", 1, (1, 1), _widening(element, source, 1, scaled=True))


def _scaled_four() -> Iterator[BlockRow]:
    form, element = FORMATS["fp4"], ELEMENTS["fp4"]
    for source in _SOURCES:
        wide = source == "f32"
        nearest = _narrowing(form, source, 1 if wide else 2, scaled=True, random=False)
        yield _row(f"pk_fp4_{source}", 1, (1, 1, 1) if wide else (1, 1), nearest)
        stochastic = _narrowing(form, source, 2, scaled=True, random=True)
        yield _row(f"sr_pk_fp4_{source}", 1, (2 if wide else 1, 1, 1), stochastic)
        pair = _widening(element, source, 2, scaled=True)
        yield _row(f"pk_{source}_fp4", 2 if wide else 1, (1, 1), pair)


def _scaled_six(name: str) -> Iterator[BlockRow]:
    form, element = FORMATS[name], ELEMENTS[name]
    two = _narrowing(form, "f32", 16, scaled=True, random=False)
    yield _row(f"2xpk16_{name}_f32", 6, (16, 16, 1), two)
    for source in _SOURCES:
        size = 32 if source == "f32" else 16
        stochastic = _narrowing(form, source, 32, scaled=True, random=True)
        yield _row(f"sr_pk32_{name}_{source}", 6, (size, 1, 1), stochastic)
        yield _row(
            f"pk32_{source}_{name}", size, (6, 1), _widening(element, source, 32, scaled=True)
        )
        if source != "f32":
            nearest = _narrowing(form, source, 32, scaled=True, random=False)
            yield _row(f"pk32_{name}_{source}", 6, (size, 1), nearest)


def _byte(element: Element) -> Callable[[Lanes], Lanes]:
    """Widen the low byte."""

    def compute(a: Lanes) -> Lanes:
        result: Lanes = element.decode(a & np.uint32(0xFF)).astype(np.float32)
        return result

    return compute


def _sdwa_rows() -> Iterator[AluRow]:
    """Yield conversions whose byte or half SDWA selects: GFX9."""
    for elements, needs in ((FNUZ, Feature.FNUZ_FLOAT8), (ELEMENTS, Feature.CDNA4)):
        for name in _EIGHT:
            element = elements[name]
            byte = _byte(element)

            def pair(a: Lanes, byte: Callable[[Lanes], Lanes] = byte) -> Lanes:
                low, high = (
                    np.ascontiguousarray(byte(each)).view(np.uint32).astype(np.uint64)
                    for each in (a, a >> np.uint32(8))
                )
                result: Lanes = low | (high << np.uint64(32))
                return result

            yield AluRow(f"v_cvt_f32_{name}", (Type.F32,), (Type.B32,), byte, needs=needs)
            yield AluRow(f"v_cvt_pk_f32_{name}", (Type.B64,), (Type.B32,), pair, needs=needs)


ROWS = (
    *_sdwa_rows(),
    AluRow("v_prng_b32", (Type.U32,), (Type.U32,), _next_random, needs=Feature.CDNA4),
)
BLOCK_ROWS = (
    *_unscaled_rows(FNUZ_FORMATS, FNUZ, Feature.FNUZ_FLOAT8),
    *_unscaled_rows(FORMATS, ELEMENTS, Feature.OCP_FLOAT8),
    *(row for name in _EIGHT for row in _scaled_eight(name)),  # these are gfx950's
    *_scaled_four(),
    *(row for name in _SIX for row in _scaled_six(name)),
)
