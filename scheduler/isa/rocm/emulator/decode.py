"""Decodes each instruction once into a step that changes the state of a group of waves."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from scheduler.isa.listing import Instruction
from scheduler.isa.rocm.emulator import (
    atomics,
    blocks,
    buffers,
    cross_lane,
    lds,
    register_indexing,
    scalar_floats,
    scalar_memory,
    scalar_unit,
    system,
    transposes,
    vector,
    vector_memory,
)
from scheduler.isa.rocm.emulator.alu.row import AluRow
from scheduler.isa.rocm.emulator.constant_tables import link_operands, pc_distance
from scheduler.isa.rocm.emulator.control import Control, Ending, control_of
from scheduler.isa.rocm.emulator.operands import EXEC, Operands, RegisterFile, parse
from scheduler.isa.rocm.emulator.program import Program
from scheduler.isa.rocm.emulator.scalar_rows import SCALAR_ROWS
from scheduler.isa.rocm.emulator.sources import UnreadableError, row_of
from scheduler.isa.rocm.emulator.state import Group
from scheduler.isa.rocm.emulator.tables import block_rows, vector_rows
from scheduler.isa.rocm.instruction_set.row import Effect
from scheduler.isa.rocm.instruction_set.spellings import canonical_name
from scheduler.isa.rocm.instruction_set.table import find_opcode

Step = Callable[[Group], None]
_REGISTER = re.compile(r"\b([va])(?:(\d{1,4})|\[(\d{1,4})(?::(\d{1,4}))?\])")
_EXEC = re.compile(r"\bexec(?:_lo|_hi)?\b")
_MAX_REGISTERS = 1024
_MAX_INDEXED = 255
# Errors of instructions with operands that do not fit, at decoding or at execution.
DECODE_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True)
class StraightRun:
    """Instructions [first, end) that are executed in sequence with the same active lanes, and the
    control flow after them. ``places`` are the instructions of the steps; ``unknown`` are those
    that this emulator does not know."""

    first: int
    end: int
    steps: tuple[Step, ...]
    places: tuple[int, ...]
    control: Control
    unknown: tuple[tuple[int, str], ...] = ()


class DecodedProgram:
    """A program's instructions as steps, decoded when first reached."""

    def __init__(
        self, program: Program, addresses: Mapping[tuple[str, str], int] = MappingProxyType({})
    ) -> None:
        self.program = program
        self._gpu = program.gpu
        self._addresses = addresses
        self._unknown: dict[int, str] = {}
        self._rows = vector_rows(program.gpu.features)
        self._blocks = block_rows(program.gpu.features)
        self._runs: dict[int, StraightRun] = {}
        self._steps: dict[int, Step] = {}
        function = program.function
        self._instructions = function.instructions
        self._starts = set(function.labels.values())
        self._indexed = register_indexing.has_computed_index(self._instructions)
        # The highest vector registers of each kind that the program names.
        most = {"v": 0, "a": -1}
        for operands in {instruction.operands for instruction in self._instructions}:
            for match in _REGISTER.finditer(operands):
                last = int(match[4] or match[3] or match[2])
                if last < _MAX_REGISTERS:
                    most[match[1]] = max(most[match[1]], last)
        if self._indexed:
            most["v"] = max(most["v"], _MAX_INDEXED)
        # A load may name only its first register.
        self.accumulation = most["v"] + 5
        self.registers = self.accumulation + most["a"] + 5

    def run_at(self, pc: int) -> StraightRun:
        """Return the run that begins at an instruction."""
        if pc in self._runs:
            return self._runs[pc]
        at = pc
        steps: list[tuple[int, Step]] = []
        control: Control | None = None
        while at < len(self._instructions) and control is None:
            instruction = self._instructions[at]
            name = canonical_name(instruction.mnemonic)
            control = control_of(self.program.function, instruction, name)
            if control is not None and control.ending is Ending.CUT:
                self._unknown[at] = instruction.mnemonic
            if control is None and find_opcode(name).row.effect is not Effect.NOTHING:
                if at not in self._steps:
                    self._steps[at] = self._decode(at, instruction, name)
                steps.append((at, self._steps[at]))
            at += 1
            if at in self._starts or _writes_exec(instruction):
                break
        if control is None:
            control = Control(Ending.FALLS if at < len(self._instructions) else Ending.ENDS, at)
        run = self._runs[pc] = StraightRun(
            first=pc,
            end=at,
            steps=tuple(step for _, step in steps),
            places=tuple(place for place, _ in steps),
            control=control,
            unknown=tuple((n, self._unknown[n]) for n in range(pc, at) if n in self._unknown),
        )
        return run

    def _decode(self, index: int, instruction: Instruction, name: str) -> Step:
        try:
            if "::" in instruction.operands:
                return self._dual(instruction)
            text = instruction.operands
            if "@" in text:
                distance = pc_distance(self._instructions, index)
                text = link_operands(text, self._addresses, distance)
            step = self._table_step(index, instruction, name, parse(text))
            if step is not None:
                return step
        except (UnreadableError, *DECODE_ERRORS):
            pass
        self._unknown[index] = instruction.mnemonic
        return self._clear_result(parse(instruction.operands), name)

    def _table_step(
        self, index: int, instruction: Instruction, name: str, operands: Operands
    ) -> Step | None:
        accumulation = self.accumulation
        mode = register_indexing.mode_at(self._instructions, index) if self._indexed else 0
        if mode and name != "v_mov_b32" and name.startswith("v_"):
            raise UnreadableError(name)
        moved = register_indexing.make(name, operands, accumulation, mode, accumulation)
        if moved is not None:
            return moved
        if name in self._blocks:
            return blocks.step_of(self._blocks[name], operands, accumulation, index)
        row = self._row(name)
        if row is not None and name.startswith(("s_", "v_s_")):
            return scalar_floats.step_of(row, operands)
        if row is not None:
            return vector.step_of(self._encoding(row, instruction.mnemonic, operands))
        if name in SCALAR_ROWS:
            return scalar_unit.step_of(SCALAR_ROWS[name], operands)
        if name in cross_lane.MAKERS:
            return cross_lane.MAKERS[name](operands, accumulation)
        by_stride = self._gpu.buffers_check_by_stride
        return (
            scalar_unit.masked_step(name, operands)
            or vector_memory.make(name, operands, accumulation, index)
            or lds.make(name, operands, accumulation, index)
            or transposes.make(name, operands, accumulation, index)
            or scalar_memory.make(name, operands, index)
            or system.make(name, operands)
            or atomics.make(name, operands, accumulation, index)
            or atomics.make_lds(name, operands, accumulation, index)
            or buffers.make(name, operands, accumulation, index, by_stride)
        )

    def _row(self, name: str) -> AluRow | None:
        if name.startswith("v_cmpx_"):
            name = "v_cmp_" + name.removeprefix("v_cmpx_")
        for constant, plain in (("aak_", "a_"), ("amk_", "a_"), ("adak_", "ad_"), ("admk_", "ad_")):
            if name.startswith(("v_fm", "v_m")) and constant in name:
                name = name.replace(constant, plain, 1)
                break
        return self._rows.get(name)

    def _encoding(self, row: AluRow, mnemonic: str, operands: Operands) -> vector.Encoding:
        return vector.Encoding(
            row,
            mnemonic,
            operands,
            self.accumulation,
            self.program.lanes,
            self._gpu.clears_upper_halves,
        )

    def _dual(self, instruction: Instruction) -> Step:
        """Two operations issued as one: both read before either writes."""
        first, _, second = instruction.operands.partition("::")
        name, _, rest = second.strip().partition(" ")
        parts = []
        for mnemonic, text in ((instruction.mnemonic, first), (name, rest)):
            plain = canonical_name(mnemonic.replace("v_dual_", "v_", 1))
            row = self._row(plain)
            if row is None:
                raise UnreadableError(mnemonic)
            encoding = self._encoding(row, plain, parse(text.strip()))
            parts.append((vector.compute_step(encoding), vector.write_step(encoding)))
        (compute_first, write_first), (compute_second, write_second) = parts

        def step(g: Group) -> None:
            results = compute_first(g).copy(), compute_second(g).copy()
            write_first(g, results[0])
            write_second(g, results[1])

        return step

    def _clear_result(self, operands: Operands, name: str) -> Step:
        """Write zeros to the result of an unknown instruction."""
        target = operands.operands[0] if operands.operands else None
        if target is None or "store" in name or "write" in name:
            return lambda _: None
        if target.file is RegisterFile.SCALAR and target.index < EXEC:
            registers = range(target.index, min(target.index + target.count, EXEC))

            def clear(g: Group) -> None:
                for register in registers:
                    g.s[register] = 0

            return clear
        if target.file not in (RegisterFile.VECTOR, RegisterFile.ACCUMULATION):
            return lambda _: None
        start = row_of(target, self.accumulation)
        rows = slice(start, start + target.count)

        def clear_rows(g: Group) -> None:
            g.v[rows][:, g.mask] = 0

        return clear_rows


def decode_program(program: Program, addresses: Mapping[tuple[str, str], int]) -> DecodedProgram:
    """Decode a program, once per program and position of its tables."""
    key = tuple(sorted(addresses.items()))
    decoded = program.cache.get(key)
    if not isinstance(decoded, DecodedProgram):
        decoded = program.cache[key] = DecodedProgram(program, addresses)
    return decoded


def _writes_exec(instruction: Instruction) -> bool:
    if instruction.mnemonic.startswith("v_cmpx") or "exec_b" in instruction.mnemonic:
        return True
    first = instruction.operands.partition(",")[0]
    return instruction.mnemonic.startswith(("s_", "v_read")) and bool(_EXEC.search(first))
