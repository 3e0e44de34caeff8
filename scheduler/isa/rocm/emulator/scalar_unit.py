"""The scalar unit: builds steps from the rows of its table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from scheduler.isa.rocm.emulator.alu.row import Type
from scheduler.isa.rocm.emulator.constants import bit_width
from scheduler.isa.rocm.emulator.operands import EXEC, NULL, Operand, Operands, RegisterFile
from scheduler.isa.rocm.emulator.scalar_rows import LOGIC, ScalarRow
from scheduler.isa.rocm.emulator.sources import UnreadableError, read_scalar
from scheduler.isa.rocm.emulator.state import Group, Value, collapse, map_waves

Step = Callable[[Group], None]
_SIGNED = frozenset([Type.I16, Type.I32, Type.I64])


def _source(operand: Operand, kind: Type) -> Callable[[Group], Value]:
    bits = bit_width(kind)
    read = read_scalar(operand, bits, kind)
    if kind not in _SIGNED:
        return read
    sign = 1 << (bits - 1)
    if operand.file is RegisterFile.CONSTANT:
        number = read(None)  # type: ignore[arg-type] # a constant does not look at the state
        assert isinstance(number, int)
        constant = (number ^ sign) - sign
        return lambda _: constant
    return lambda g: map_waves(lambda value: (value ^ sign) - sign, read(g))


def store_scalar(operand: Operand, bits: int) -> Callable[[Group, Value], None]:
    """Return a function that writes a scalar result of 32 or 64 bits (already truncated)."""
    if operand.file is not RegisterFile.SCALAR or operand.index + bits // 32 > EXEC + 2:
        raise UnreadableError(operand.text)
    index = operand.index
    if index == NULL:
        return lambda *_: None
    is_exec = index in (EXEC, EXEC + 1)

    def store(g: Group, value: Value) -> None:
        if bits == 64:
            g.set_pair(index, value)
        else:
            g.s[index] = value
        if is_exec:
            g.refresh()

    return store


def step_of(row: ScalarRow, operands: Operands) -> Step:
    """Build the step of one scalar instruction."""
    operand_list = list(operands.operands)
    results = operand_list[:1] if row.result is not None else []
    sources = operand_list[len(results) :]
    if row.accumulates:
        sources = [*results, *sources]
    if len(sources) != len(row.sources):
        raise UnreadableError(row.name)
    last = sources[-1]
    takes_simm16 = "k_" in row.name and row.name.endswith("_i32")
    if takes_simm16 and last.file is RegisterFile.CONSTANT and isinstance(last.value, int):
        # 16 bits with a sign, in either notation.
        value = ((last.value & 0xFFFF) ^ 0x8000) - 0x8000
        sources[-1] = replace(last, value=value, literal=False)
    reads = [_source(each, kind) for each, kind in zip(sources, row.sources, strict=True)]
    if row.reads:
        reads.append(lambda g: g.scc)
    bits = bit_width(row.result) if row.result is not None else 0
    store = store_scalar(results[0], bits) if results else None
    compute, mask, sets = row.compute, (1 << bits) - 1, row.sets

    def step(g: Group) -> None:
        values = [read(g) for read in reads]
        for value in values:
            if not isinstance(value, int):
                break
        else:
            result = compute(*values)
            if store is None:
                g.scc = result
            elif sets:
                store(g, result[0] & mask)
                g.scc = result[1]
            else:
                store(g, result & mask)
            return
        columns = [[value] * g.count if isinstance(value, int) else value for value in values]
        many = [compute(*column) for column in zip(*columns, strict=True)]
        if store is None:
            g.scc = collapse(many)
        elif sets:
            store(g, collapse([each[0] & mask for each in many]))
            g.scc = collapse([each[1] for each in many])
        else:
            store(g, collapse([each & mask for each in many]))

    return step


def masked_step(name: str, operands: Operands) -> Step | None:
    """Build ``s_<logic>_saveexec``, ``s_<logic>_wrexec``; None for other instructions."""
    logic, _, rest = name.removeprefix("s_").partition("_")
    kind, _, size = rest.partition("_b")
    if logic not in LOGIC or kind not in ("saveexec", "wrexec") or size not in ("32", "64"):
        return None
    if len(operands.operands) != 2:
        raise UnreadableError(name)
    bits = int(size)
    compute, mask = LOGIC[logic], (1 << bits) - 1
    target, source = operands.operands
    read = read_scalar(source, bits, Type.B64 if bits == 64 else Type.B32)
    store = store_scalar(target, bits)
    store_exec = store_scalar(Operand(RegisterFile.SCALAR, EXEC, 2, text="exec"), bits)
    saves = kind == "saveexec"

    def step(g: Group) -> None:
        old = g.exec
        new = map_waves(lambda value, lanes: compute(value, lanes) & mask, read(g), old)
        scc = map_waves(lambda lanes: int(lanes != 0), new)
        if not isinstance(new, int) and not isinstance(scc, int):
            new, scc = collapse(new), collapse(scc)
        store(g, old if saves else new)
        store_exec(g, new)
        g.scc = scc

    return step
