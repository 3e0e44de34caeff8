"""The vector unit: builds steps from the rows of its table, with all that an encoding can add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduler.isa.rocm.emulator import sdwa
from scheduler.isa.rocm.emulator.alu.row import AluRow, Type
from scheduler.isa.rocm.emulator.constants import bit_width
from scheduler.isa.rocm.emulator.dpp import Dpp, dpp_of
from scheduler.isa.rocm.emulator.operands import EXEC, VCC, Operand, Operands, RegisterFile
from scheduler.isa.rocm.emulator.sources import (
    FLOATS,
    Read,
    UnreadableError,
    Write,
    half_bits,
    read_raw,
    read_source,
    reinterpret,
    row_of,
    write_result,
)
from scheduler.isa.rocm.emulator.state import Group

Step = Callable[[Group], None]
_VCC = Operand(RegisterFile.SCALAR, VCC, 2, text="vcc")
# On GFX9 these keep the other half of their result; most others set it to zero.
_KEEPS = frozenset(["v_fma_f16", "v_mad_f16", "v_mad_u16", "v_mad_i16", "v_div_fixup_f16"])


class Encoding:
    """One instruction's row with its operands: what is read, computed and written."""

    def __init__(
        self,
        row: AluRow,
        mnemonic: str,
        operands: Operands,
        accumulation: int,
        lanes: int,
        clears_upper_halves: bool,
    ) -> None:
        self.row = row
        self.mnemonic = mnemonic
        self.operands = operands
        self.accumulation = accumulation
        self.clears_upper_halves = clears_upper_halves
        self.is_sdwa = mnemonic.endswith("_sdwa")
        self.dpp = dpp_of(operands, lanes)
        self.select = operands.modifiers.get("op_sel", ())
        self.results, self.sources = self._split()

    def _split(self) -> tuple[list[Operand], list[Operand]]:
        """Split the operands into results and sources; operands that the text omits are added."""
        found = list(self.operands.operands)
        row = self.row
        exec_only = self.mnemonic.startswith("v_cmpx")
        expected = len(row.sources) - (1 if row.accumulates else 0)
        results = found[: max(0, len(found) - expected)] if exec_only else found[: len(row.results)]
        sources = found[len(results) :]
        if row.accumulates:
            sources = [*sources[:expected], results[0]]
        if len(sources) == len(row.sources) - 1 and Type.MASK in row.sources:
            sources.insert(row.sources.index(Type.MASK), _VCC)
        if len(sources) != len(row.sources) or (len(results) != len(row.results) and not exec_only):
            raise UnreadableError(self.mnemonic)
        return results, sources

    # -- sources ----------------------------------------------------------------------------------

    def reads(self) -> list[Read]:
        if self.row.packed:
            return [self._packed(number) for number in range(len(self.sources))]
        if self.row.mixed:
            return [self._mixed(number) for number in range(len(self.sources))]
        return [self._read(number) for number in range(len(self.sources))]

    def _read(self, number: int) -> Read:
        operand, kind = self.sources[number], self.row.sources[number]
        old = self.row.accumulates and number == len(self.sources) - 1
        if self.is_sdwa and not old and kind is not Type.MASK:
            return self._sdwa(number, operand, kind)
        if self.dpp is not None and number == 0:
            return self._dpp_read(operand, kind, self.dpp)
        half = self.select[number] if number < len(self.select) and not old else 0
        if old and bit_width(kind) == 16 and self.select:
            half = self.select[-1]
        return read_source(operand, kind, self.accumulation, half)

    def _sdwa(self, number: int, operand: Operand, kind: Type) -> Read:
        chosen = sdwa.select(self.operands, number, operand.extended)
        if chosen is None and bit_width(kind) != 16:
            return read_source(operand, kind, self.accumulation)
        whole = read_raw(operand, 32, self.accumulation, Type.B32)
        if operand.file is RegisterFile.CONSTANT:
            return read_source(operand, kind, self.accumulation)
        picked = chosen or (lambda value: value)
        if bit_width(kind) == 16:
            return self._signed(lambda g: picked(whole(g)).astype(np.uint16), operand, kind)
        return self._signed(lambda g: picked(whole(g)), operand, kind)

    def _dpp_read(self, operand: Operand, kind: Type, dpp: Dpp) -> Read:
        bits = read_raw(operand, bit_width(kind), self.accumulation, kind)

        def read(g: Group) -> npt.NDArray[Any]:
            whole = np.broadcast_to(bits(g), (g.count, g.lanes))
            found = whole[:, dpp.lanes]
            good = reachable_lanes(dpp, g)
            return found if good is None else np.where(good, found, found.dtype.type(0))

        return self._signed(read, operand, kind)

    def _signed(self, bits: Read, operand: Operand, kind: Type) -> Read:
        if not operand.negative and not operand.absolute:
            return reinterpret(bits, kind)
        sign = 1 << (bit_width(kind) - 1)

        def read(g: Group) -> npt.NDArray[Any]:
            value = bits(g)
            number = value.dtype.type
            if operand.absolute:
                value = value & number(sign - 1)
            return value ^ number(sign) if operand.negative else value

        return reinterpret(read, kind)

    def _packed(self, number: int) -> Read:
        """Read the low and the high elements, [2, waves, lanes]."""
        operand, kind = self.sources[number], self.row.sources[number]
        if self.row.accumulates and number == len(self.sources) - 1:
            places = (0, 1)
        else:
            low, high = self._chosen("op_sel", number, 0), self._chosen("op_sel_hi", number, 1)
            places = (low, high)
        negative = (self._chosen("neg_lo", number, 0), self._chosen("neg_hi", number, 0))
        parts = [
            self._element(operand, kind, place, bool(sign))
            for place, sign in zip(places, negative, strict=True)
        ]

        def read(g: Group) -> npt.NDArray[Any]:
            return np.stack(np.broadcast_arrays(parts[0](g), parts[1](g)))

        return read

    def _element(self, operand: Operand, kind: Type, place: int, negative: bool) -> Read:
        signed = replace(operand, negative=operand.negative != negative)
        if bit_width(kind) == 16:
            return read_source(signed, kind, self.accumulation, place)
        if operand.file is not RegisterFile.CONSTANT and operand.count > 1:
            signed = replace(signed, index=operand.index + place, count=1)
        return read_source(signed, kind, self.accumulation)

    def _chosen(self, name: str, number: int, default: int) -> int:
        found = self.operands.modifiers.get(name, ())
        return found[number] if number < len(found) else default

    def _mixed(self, number: int) -> Read:
        """Read a register as f32, or a half of it as f16 (selected by op_sel_hi)."""
        operand = self.sources[number]
        absolute = operand.absolute or bool(self._chosen("neg_hi", number, 0))
        negative = operand.negative != bool(self._chosen("neg_lo", number, 0))
        changed = replace(operand, absolute=absolute, negative=negative)
        if not self._chosen("op_sel_hi", number, 0):
            return read_source(changed, Type.F32, self.accumulation)
        place = self._chosen("op_sel", number, 0)
        narrow = read_source(changed, Type.F16, self.accumulation, place)
        return lambda g: narrow(g).astype(np.float32)

    # -- results ----------------------------------------------------------------------------------

    def writes(self) -> list[Write]:
        if self.mnemonic.startswith("v_cmpx"):
            return [self._write_exec()]
        if self.row.packed:
            return [self._write_packed()]
        return [
            self._write(operand, kind)
            for operand, kind in zip(self.results, self.row.results, strict=True)
        ]

    def _write_exec(self) -> Write:
        also = write_result(self.results[0], Type.MASK, 0, 0, False) if self.results else None

        def both_masks(g: Group, result: Any) -> None:
            if also is not None:
                also(g, result)
            g.set_mask(EXEC, result)

        return both_masks

    def _write(self, operand: Operand, kind: Type) -> Write:
        if kind is Type.MASK:
            return write_result(operand, kind, self.accumulation, 0, False)
        placed = sdwa.place_result(self.operands) if self.is_sdwa else None
        if placed is not None:
            return self._write_placed(operand, kind, placed)
        half, keeps = 0, not self.clears_upper_halves or self.row.name in _KEEPS
        if bit_width(kind) == 16:
            if "mixhi" in self.row.name:
                half, keeps = 1, True
            elif "mixlo" in self.row.name:
                keeps = True
            elif len(self.select) > len(self.row.sources):
                half, keeps = self.select[len(self.row.sources)], True
            if self.row.accumulates and self.select:
                half, keeps = self.select[-1], True
        return write_result(operand, kind, self.accumulation, half, keeps)

    def _write_placed(
        self, operand: Operand, kind: Type, placed: Callable[[Any, Any], Any]
    ) -> Write:
        row = row_of(operand, self.accumulation)
        whole = write_result(replace(operand, half=""), Type.B32, self.accumulation, 0, False)

        def merge(g: Group, result: Any) -> None:
            bits = half_bits(result, kind) if bit_width(kind) == 16 else result
            number = bits.astype(np.uint32) if bit_width(kind) == 16 else bits.view(np.uint32)
            whole(g, placed(number, g.v[row]))

        return merge

    def _write_packed(self) -> Write:
        kind, operand = self.row.results[0], self.results[0]
        if bit_width(kind) == 16:
            parts = [write_result(operand, kind, self.accumulation, half, True) for half in (0, 1)]
        else:
            parts = [
                write_result(
                    replace(operand, index=operand.index + n), kind, self.accumulation, 0, False
                )
                for n in (0, 1)
            ]

        def pair(g: Group, result: Any) -> None:
            parts[0](g, result[0])
            parts[1](g, result[1])

        return pair

    # -- between ----------------------------------------------------------------------------------

    def finish(self) -> Callable[[Any], Any] | None:
        """Return the output factor and clamp; None if there is neither."""
        factor = {"mul:2": 2.0, "mul:4": 4.0, "div:2": 0.5}
        times = 1.0
        for name in ("mul", "div"):
            if name in self.operands.modifiers:
                times = factor.get(f"{name}:{self.operands.number(name)}", 1.0)
        clamped = "clamp" in self.operands.words and self.row.results[0] in FLOATS
        if times == 1.0 and not clamped:
            return None

        def change(result: Any) -> Any:
            if times != 1.0:
                result = result * result.dtype.type(times)
            if clamped:
                one = result.dtype.type(1)
                result = np.clip(np.where(np.isnan(result), one - one, result), one - one, one)
            return result

        return change


def reachable_lanes(dpp: Dpp, g: Group) -> npt.NDArray[np.bool_] | None:
    """Return which lanes have a lane to read from; None: all."""
    if g.full or dpp.inactive:
        return None if dpp.valid.all() else dpp.valid
    return g.mask[:, dpp.lanes] & dpp.valid


_INTEGER_CLAMPS: dict[str, Callable[..., Any]] = {
    "v_add_u32": lambda a, b: np.minimum(a.astype(np.uint64) + b, 0xFFFF_FFFF).astype(np.uint32),
    "v_sub_u32": lambda a, b: np.where(a < b, np.uint32(0), a - b),
    "v_subrev_u32": lambda a, b: np.where(b < a, np.uint32(0), b - a),
    "v_add_u16": lambda a, b: np.minimum(a.astype(np.uint32) + b, 0xFFFF).astype(np.uint16),
    "v_sub_u16": lambda a, b: np.where(a < b, np.uint16(0), a - b),
    "v_add_i32": lambda a, b: _signed_clip(a.astype(np.int64) + b, np.int32),
    "v_sub_i32": lambda a, b: _signed_clip(a.astype(np.int64) - b, np.int32),
    "v_add_i16": lambda a, b: _signed_clip(a.astype(np.int64) + b, np.int16),
    "v_sub_i16": lambda a, b: _signed_clip(a.astype(np.int64) - b, np.int16),
    "v_pk_add_i16": lambda a, b: _signed_clip(a.astype(np.int64) + b, np.int16),
    "v_pk_sub_i16": lambda a, b: _signed_clip(a.astype(np.int64) - b, np.int16),
    "v_pk_add_u16": lambda a, b: _signed_clip(a.astype(np.int64) + b, np.uint16),
    "v_pk_sub_u16": lambda a, b: _signed_clip(a.astype(np.int64) - b, np.uint16),
    "v_pk_mad_i16": lambda a, b, c: _signed_clip(a.astype(np.int64) * b + c, np.int16),
    "v_pk_mad_u16": lambda a, b, c: _signed_clip(a.astype(np.int64) * b + c, np.uint16),
}


# For these the bit requests exceptions, or has no meaning.
_UNCLAMPED = ("v_cvt_", "v_cmp_")


def _clamped_compute(row: AluRow) -> Callable[..., Any]:
    """Return a row's computation with integer results clamped to their type's range;
    ``Encoding.finish`` clamps floats."""
    found = _INTEGER_CLAMPS.get(row.name)
    if found is not None:
        return found
    if row.results[0] in FLOATS or row.name.startswith(_UNCLAMPED):
        return row.compute
    raise UnreadableError(row.name)


def _signed_clip(value: Any, dtype: Any) -> Any:
    limits = np.iinfo(dtype)
    return np.clip(value, limits.min, limits.max).astype(dtype)


def compute_step(encoding: Encoding) -> Callable[[Group], Any]:
    """Return a step that reads and computes the results, without writing them."""
    reads = encoding.reads()
    compute = encoding.row.compute
    if "clamp" in encoding.operands.words:
        compute = _clamped_compute(encoding.row)
    finish = encoding.finish()
    if finish is not None:
        plain, change = compute, finish
        compute = lambda *sources: change(plain(*sources))  # noqa: E731
    if len(reads) == 1:
        (only,) = reads
        return lambda g: compute(only(g))
    if len(reads) == 2:
        first, second = reads
        return lambda g: compute(first(g), second(g))
    if len(reads) == 3:
        one, two, three = reads
        return lambda g: compute(one(g), two(g), three(g))
    return lambda g: compute(*[read(g) for read in reads])


def write_step(encoding: Encoding) -> Write:
    """Return a step that writes the results."""
    writes = encoding.writes()
    if len(writes) == 1:
        (only,) = writes
        return only if encoding.dpp is None else _masked_write(only, encoding.dpp)

    def several(g: Group, results: Any) -> None:
        for each, result in zip(writes, results, strict=True):
            each(g, result)

    return several if encoding.dpp is None else _masked_write(several, encoding.dpp)


def _masked_write(each: Write, dpp: Dpp) -> Write:
    """Write only the lanes that DPP's masks allow."""

    def write_some(g: Group, result: Any) -> None:
        allowed = dpp.written
        if not dpp.zero:
            good = reachable_lanes(dpp, g)
            allowed = allowed if good is None else allowed & good
        if allowed.all():
            each(g, result)
            return
        full, mask = g.full, g.mask
        g.full, g.mask = False, mask & allowed
        try:
            each(g, result)
        finally:
            g.full, g.mask = full, mask

    return write_some


def step_of(encoding: Encoding) -> Step:
    """Build the step of one instruction."""
    compute, store = compute_step(encoding), write_step(encoding)
    return lambda g: store(g, compute(g))
