"""The scalar unit: builds steps from the rows of its table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from scheduler.isa.rocm.emulator.alu.row import Type
from scheduler.isa.rocm.emulator.constants import bit_width
from scheduler.isa.rocm.emulator.operands import EXEC, NULL, Operand, Operands, RegisterFile
from scheduler.isa.rocm.emulator.scalar_rows import LOGIC, ScalarRow
from scheduler.isa.rocm.emulator.sources import UnreadableError, read_scalar
from scheduler.isa.rocm.emulator.state import Group, Value, collapse

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

    def signed(g: Group) -> Value:
        value = read(g)
        if isinstance(value, int):
            return (value ^ sign) - sign
        return [(each ^ sign) - sign for each in value]

    return signed


def store_scalar(operand: Operand, bits: int) -> Callable[[Group, Value], None]:
    """Return a function that writes a scalar result of 32 or 64 bits (already truncated)."""
    if operand.file is not RegisterFile.SCALAR or operand.index + bits // 32 > EXEC + 2:
        raise UnreadableError(operand.text)
    index = operand.index
    if index == NULL:
        return _discard
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
    found = list(operands.operands)
    results = found[:1] if row.result is not None else []
    sources = found[len(results) :]
    if row.accumulates:
        sources = [*results, *sources]
    if len(sources) != len(row.sources):
        raise UnreadableError(row.name)
    takes_simm16 = "k_" in row.name and row.name.endswith("_i32")
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
    return _build_step(row.compute, reads, store, (1 << bits) - 1, row.sets)


def _build_step(
    compute: Callable[..., Any],
    reads: list[Callable[[Group], Value]],
    store: Callable[[Group, Value], None] | None,
    mask: int,
    sets: bool,
) -> Step:
    def finish_one(g: Group, found: Any) -> None:
        if store is None:
            g.scc = found
        elif sets:
            store(g, found[0] & mask)
            g.scc = found[1]
        else:
            store(g, found & mask)

    def finish_many(g: Group, found: list[Any]) -> None:
        if store is None:
            g.scc = collapse(found)
        elif sets:
            store(g, collapse([each[0] & mask for each in found]))
            g.scc = collapse([each[1] for each in found])
        else:
            store(g, collapse([each & mask for each in found]))

    if len(reads) == 1:
        (only,) = reads

        def single(g: Group) -> None:
            a = only(g)
            if isinstance(a, int):
                finish_one(g, compute(a))
            else:
                finish_many(g, [compute(each) for each in a])

        return single
    if len(reads) == 2:
        first, second = reads

        def double(g: Group) -> None:
            a, b = first(g), second(g)
            if isinstance(a, int):
                if isinstance(b, int):
                    finish_one(g, compute(a, b))
                else:
                    finish_many(g, [compute(a, each) for each in b])
            elif isinstance(b, int):
                finish_many(g, [compute(each, b) for each in a])
            else:
                finish_many(g, [compute(*each) for each in zip(a, b, strict=True)])

        return double

    def several(g: Group) -> None:
        values = [read(g) for read in reads]
        if all(isinstance(value, int) for value in values):
            finish_one(g, compute(*values))
            return
        columns = [[value] * g.count if isinstance(value, int) else value for value in values]
        finish_many(g, [compute(*each) for each in zip(*columns, strict=True)])

    return several


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
    target, given = operands.operands
    read = read_scalar(given, bits, Type.B64 if bits == 64 else Type.B32)
    store = store_scalar(target, bits)
    lanes = store_scalar(Operand(RegisterFile.SCALAR, EXEC, 2, text="exec"), bits)
    saves = kind == "saveexec"

    def step(g: Group) -> None:
        value, old = read(g), g.exec
        if isinstance(value, int) and isinstance(old, int):
            new: Value = compute(value, old) & mask
            scc: Value = int(new != 0)
        else:
            ours = [value] * g.count if isinstance(value, int) else value
            theirs = [old] * g.count if isinstance(old, int) else old
            found = [compute(a, b) & mask for a, b in zip(ours, theirs, strict=True)]
            new, scc = collapse(found), collapse([int(each != 0) for each in found])
        store(g, old if saves else new)
        lanes(g, new)
        g.scc = scc

    return step


def _discard(_: Group, __: Value) -> None:
    """Discard a result."""
