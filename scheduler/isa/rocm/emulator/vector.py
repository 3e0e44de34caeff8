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
        # Split the operands into results and sources; add those that the text omits.
        operand_list = list(operands.operands)
        exec_only = mnemonic.startswith("v_cmpx")
        expected = len(row.sources) - (1 if row.accumulates else 0)
        results = (
            operand_list[: max(0, len(operand_list) - expected)]
            if exec_only
            else operand_list[: len(row.results)]
        )
        sources = operand_list[len(results) :]
        if row.accumulates:
            sources = [*sources[:expected], results[0]]
        if len(sources) == len(row.sources) - 1 and Type.MASK in row.sources:
            sources.insert(row.sources.index(Type.MASK), _VCC)
        if len(sources) != len(row.sources) or (len(results) != len(row.results) and not exec_only):
            raise UnreadableError(mnemonic)
        self.results, self.sources = results, sources

    # -- sources ----------------------------------------------------------------------------------

    def reads(self) -> list[Read]:
        read = self._read
        if self.row.packed:
            read = self._read_packed
        elif self.row.mixed:
            read = self._read_mixed
        return [read(number) for number in range(len(self.sources))]

    def _read(self, number: int) -> Read:
        operand, kind = self.sources[number], self.row.sources[number]
        accumulator = self.row.accumulates and number == len(self.sources) - 1
        if self.is_sdwa and not accumulator and kind is not Type.MASK:
            selected = sdwa.select(self.operands, number, operand.extended)
            is_half = bit_width(kind) == 16
            if operand.file is RegisterFile.CONSTANT or (selected is None and not is_half):
                return read_source(operand, kind, self.accumulation)
            register = read_raw(operand, 32, self.accumulation, Type.B32)

            def part(g: Group) -> npt.NDArray[Any]:
                value = register(g)
                if selected is not None:
                    value = selected(value)
                return value.astype(np.uint16) if is_half else value

            return self._signed(part, operand, kind)
        if self.dpp is not None and number == 0:
            dpp, bits = self.dpp, read_raw(operand, bit_width(kind), self.accumulation, kind)

            def permuted(g: Group) -> npt.NDArray[Any]:
                values = np.broadcast_to(bits(g), (g.count, g.lanes))[:, dpp.lanes]
                reachable = reachable_lanes(dpp, g)
                if reachable is None:
                    return values
                return np.where(reachable, values, values.dtype.type(0))

            return self._signed(permuted, operand, kind)
        half = self.select[number] if number < len(self.select) and not accumulator else 0
        if accumulator and bit_width(kind) == 16 and self.select:
            half = self.select[-1]
        return read_source(operand, kind, self.accumulation, half)

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

    def _read_packed(self, number: int) -> Read:
        """Read the low and the high elements, [2, waves, lanes]."""
        operand, kind = self.sources[number], self.row.sources[number]
        is_accumulator = self.row.accumulates and number == len(self.sources) - 1
        elements = []
        for default, select, negate in ((0, "op_sel", "neg_lo"), (1, "op_sel_hi", "neg_hi")):
            half = default if is_accumulator else self._modifier(select, number, default)
            negative = operand.negative != bool(self._modifier(negate, number, 0))
            element = replace(operand, negative=negative)
            if bit_width(kind) != 16:
                if operand.file is not RegisterFile.CONSTANT and operand.count > 1:
                    element = replace(element, index=operand.index + half, count=1)
                half = 0
            elements.append(read_source(element, kind, self.accumulation, half))
        low, high = elements
        return lambda g: np.stack(np.broadcast_arrays(low(g), high(g)))

    def _read_mixed(self, number: int) -> Read:
        """Read a register as f32, or a half of it as f16 (selected by op_sel_hi)."""
        operand = self.sources[number]
        absolute = operand.absolute or bool(self._modifier("neg_hi", number, 0))
        negative = operand.negative != bool(self._modifier("neg_lo", number, 0))
        operand = replace(operand, absolute=absolute, negative=negative)
        if not self._modifier("op_sel_hi", number, 0):
            return read_source(operand, Type.F32, self.accumulation)
        half = read_source(
            operand, Type.F16, self.accumulation, self._modifier("op_sel", number, 0)
        )
        return lambda g: half(g).astype(np.float32)

    def _modifier(self, name: str, number: int, default: int) -> int:
        """Return a modifier's value for the source of that number."""
        values = self.operands.modifiers.get(name, ())
        return values[number] if number < len(values) else default

    # -- results ----------------------------------------------------------------------------------

    def writes(self) -> list[Write]:
        if self.mnemonic.startswith("v_cmpx"):
            copies = [write_result(each, Type.MASK, 0, 0, False) for each in self.results[:1]]

            def write_exec(g: Group, mask: Any) -> None:
                for copy in copies:
                    copy(g, mask)
                g.set_mask(EXEC, mask)

            return [write_exec]
        if not self.row.packed:
            pairs = zip(self.results, self.row.results, strict=True)
            return [self._write(operand, kind) for operand, kind in pairs]
        kind, operand = self.row.results[0], self.results[0]
        if bit_width(kind) == 16:
            parts = [write_result(operand, kind, self.accumulation, half, True) for half in (0, 1)]
        else:
            registers = [replace(operand, index=operand.index + number) for number in (0, 1)]
            parts = [write_result(each, kind, self.accumulation, 0, False) for each in registers]
        return [_write_each(parts)]

    def _write(self, operand: Operand, kind: Type) -> Write:
        if kind is Type.MASK:
            return write_result(operand, kind, self.accumulation, 0, False)
        is_half = bit_width(kind) == 16
        place = sdwa.place_result(self.operands) if self.is_sdwa else None
        if place is not None:
            row = row_of(operand, self.accumulation)
            whole = write_result(replace(operand, half=""), Type.B32, self.accumulation, 0, False)

            def merge(g: Group, result: Any) -> None:
                bits = half_bits(result, kind).astype(np.uint32) if is_half else result
                whole(g, place(bits.view(np.uint32), g.v[row]))

            return merge
        half, keeps = 0, not self.clears_upper_halves or self.row.name in _KEEPS
        if is_half:
            if "mixhi" in self.row.name:
                half, keeps = 1, True
            elif "mixlo" in self.row.name:
                keeps = True
            elif len(self.select) > len(self.row.sources):
                half, keeps = self.select[len(self.row.sources)], True
            if self.row.accumulates and self.select:
                half, keeps = self.select[-1], True
        return write_result(operand, kind, self.accumulation, half, keeps)

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


def _signed_clip(value: Any, dtype: Any) -> Any:
    limits = np.iinfo(dtype)
    return np.clip(value, limits.min, limits.max).astype(dtype)


def compute_step(encoding: Encoding) -> Callable[[Group], Any]:
    """Return a step that reads and computes the results, without writing them."""
    reads = encoding.reads()
    row = encoding.row
    compute = row.compute
    if "clamp" in encoding.operands.words:
        if row.name in _INTEGER_CLAMPS:
            compute = _INTEGER_CLAMPS[row.name]
        elif row.results[0] not in FLOATS and not row.name.startswith(_UNCLAMPED):
            raise UnreadableError(row.name)  # ``Encoding.finish`` clamps floats
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
    """Return a step that writes the results, with DPP only in the lanes that its masks allow."""
    writes, dpp = encoding.writes(), encoding.dpp
    write = writes[0] if len(writes) == 1 else _write_each(writes)
    if dpp is None:
        return write

    def write_some(g: Group, result: Any) -> None:
        allowed = dpp.written
        if not dpp.zero:
            reachable = reachable_lanes(dpp, g)
            allowed = allowed if reachable is None else allowed & reachable
        if allowed.all():
            write(g, result)
            return
        full, mask = g.full, g.mask
        g.full, g.mask = False, mask & allowed
        try:
            write(g, result)
        finally:
            g.full, g.mask = full, mask

    return write_some


def _write_each(writes: list[Write]) -> Write:
    """Write each of several results."""

    def write_each(g: Group, results: Any) -> None:
        for write, result in zip(writes, results, strict=True):
            write(g, result)

    return write_each


def step_of(encoding: Encoding) -> Step:
    """Build the step of one instruction."""
    compute, store = compute_step(encoding), write_step(encoding)
    return lambda g: store(g, compute(g))
