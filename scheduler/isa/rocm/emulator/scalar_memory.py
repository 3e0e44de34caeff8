"""Loads of the scalar unit."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from scheduler.isa.rocm.emulator.operands import EXEC, NULL, Operands, RegisterFile
from scheduler.isa.rocm.emulator.sources import UnreadableError, read_scalar
from scheduler.isa.rocm.emulator.state import OUTSIDE, Group, Value, collapse, map_waves
from scheduler.isa.rocm.instruction_set.memory import DATA_SIZES

Step = Callable[[Group], None]
_LOAD = re.compile(r"s_(buffer_)?load_([us]byte|[us]short|dword(?:x\d+)?)")
_SIZES = {older: size for older, _, size in DATA_SIZES}


def make(name: str, operands: Operands, index: int) -> Step | None:
    """Make ``s_load_*`` and ``s_buffer_load_*``; None for other instructions."""
    match = _LOAD.fullmatch(name)
    if not match:
        return None
    target, base = operands.operands[:2]
    if target.file is not RegisterFile.SCALAR or base.file is not RegisterFile.SCALAR:
        raise UnreadableError(name)
    if match[2] not in _SIZES:
        return None
    bytes_loaded = _SIZES[match[2]]
    count, size = max(1, bytes_loaded // 4), min(4, bytes_loaded)
    first = target.index
    if first + count > EXEC:
        raise UnreadableError(target.text)
    start, offsets, fixed = read_scalar(base, 64), operands.operands[2:], operands.number("offset")
    if len(offsets) == 1 and offsets[0].file is RegisterFile.CONSTANT:
        value = offsets[0].value
        assert isinstance(value, int)
        offsets, fixed = (), fixed + value
    parts = [read_scalar(offset, 32) for offset in offsets]
    # A buffer's base is the lower 48 bits of its descriptor.
    mask = (1 << 48) - 1 if match[1] else (1 << 64) - 1

    def sum_address(first: int, *rest: int) -> int:
        return ((first & mask) + sum(rest) + fixed) & ((1 << 64) - 1)

    signed, sign = match[2][0] == "s", 1 << (8 * size - 1)

    def step(g: Group) -> None:
        address = map_waves(sum_address, start(g), *[part(g) for part in parts])
        whole = np.array([address] if isinstance(address, int) else address, np.uint64)
        addresses = whole.view(np.int64)
        if size == 4:
            addresses = addresses & ~3
        g.record(index, addresses[:, None], size * count, scalar=True)
        if size == 4:
            words, bad = g.machine.memory.load(addresses, count)
        else:
            small, bad = g.machine.memory.load_small(addresses, size)
            words = small[None]
        if len(bad):
            g.machine.note_outside(f"read {OUTSIDE}", index, bad)
        for word in range(count):
            values: Value = collapse(words[word].tolist())
            if signed:
                values = map_waves(lambda value: (value ^ sign) - sign & 0xFFFF_FFFF, values)
            if first != NULL:
                g.s[first + word] = values

    return step
