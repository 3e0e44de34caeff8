"""Finds bank conflicts in shared memory and uncoalesced accesses to global memory if the addresses
are known: CUDA C++ Programming Guide, "Shared memory" and "Device memory accesses".

Shared memory has 32 banks of 4 bytes; a pass serves one word of each bank, for 32 threads at 4
bytes, 16 at 8, 8 at 16. Global memory is read and written in sectors of 32 bytes. Counts are for a
block's first warp with all threads active, at a base that is aligned as the access needs.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from scheduler.isa.cuda.lane_values import (
    UNKNOWN_UNIFORM,
    ZERO,
    LaneValue,
    State,
    add_values,
    register_value,
    split_operands,
    states,
)
from scheduler.isa.hazards import Hazard, HazardKind
from scheduler.isa.listing import Function, Instruction

_BANKS, _WORD, _SECTOR = 32, 4, 32
_SHARED_OPS = frozenset({"LDS", "STS", "LDSM", "STSM"})
_GLOBAL_OPS = frozenset({"LDG", "STG"})
_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
_ADDRESS = re.compile(r"^(?:desc\[[^]]*\])?\[([^]]+)\]$")
_TERM = re.compile(r"([+-]?)(U?R(?:\d+|Z)|0x[0-9a-f]+)((?:\.\w+)*)")
_MATRIX_BYTES = 16  # a row of the 8 by 8 matrices that LDSM and STSM move


@dataclass(frozen=True)
class Access:
    """One instruction: how many passes or sectors it takes, and the minimum."""

    line: int
    count: int
    least: int


def access_hazards(function: Function) -> tuple[Hazard, ...]:
    """Return the hazards that the addresses of a function's instructions show."""
    indices = {
        index
        for index, instruction in enumerate(function.instructions)
        if instruction.mnemonic.partition(".")[0] in _SHARED_OPS | _GLOBAL_OPS
    }
    before = states(function, indices) if indices else {}
    conflicting, uncoalesced = [], []
    for index in sorted(before):
        instruction = function.instructions[index]
        address = _address(instruction, before[index])
        if address is None:
            continue
        if instruction.mnemonic.partition(".")[0] in _SHARED_OPS:
            access = _count_passes(instruction, address)
            if access.count > access.least:
                conflicting.append(access)
        else:
            access = _count_sectors(instruction, address)
            # An unaligned access may touch one more sector and still be coalesced.
            if access.count >= 2 * access.least and access.count > access.least + 1:
                uncoalesced.append(access)
    hazards = []
    for kind, memory, unit, accesses in (
        (HazardKind.BANK_CONFLICTS, "shared", "bank passes", conflicting),
        (HazardKind.UNCOALESCED, "global", f"sectors of {_SECTOR} B", uncoalesced),
    ):
        if accesses:
            plural = "access" if len(accesses) == 1 else "accesses"
            text = (
                f"{len(accesses)} {plural} to {memory} memory:"
                f" {sum(access.count for access in accesses)} {unit}"
                f" instead of {sum(access.least for access in accesses)} in the first warp"
            )
            hazards.append(Hazard(kind, text, tuple(access.line for access in accesses)))
    return tuple(hazards)


def _count_passes(instruction: Instruction, address: LaneValue) -> Access:
    name, *suffixes = instruction.mnemonic.split(".")
    threads, width = list(address.numbers), _width(suffixes)
    if name in ("LDSM", "STSM"):  # eight threads address the rows of each matrix
        matrices = next((int(suffix) for suffix in suffixes if suffix in ("2", "4")), 1)
        threads, width = threads[: 8 * matrices], _MATRIX_BYTES
    at_once = _BANKS * _WORD // max(width, _WORD)
    groups = [threads[at : at + at_once] for at in range(0, len(threads), at_once)]
    passes = 0
    for group in groups:
        words = {at // _WORD + word for at in group for word in range(max(1, width // _WORD))}
        passes += max(Counter(word % _BANKS for word in words).values())
    return Access(instruction.line, passes, len(groups))


def _count_sectors(instruction: Instruction, address: LaneValue) -> Access:
    width = _width(instruction.mnemonic.split(".")[1:])
    # Addresses are relative to an aligned one and may be negative.
    near = [at - (at >> 31 << 32) for at in address.numbers]
    sectors = {byte // _SECTOR for at in near for byte in (at, at + width - 1)}
    least = -(-len(set(near)) * width // _SECTOR)
    return Access(instruction.line, len(sectors), max(1, least))


def _width(suffixes: list[str]) -> int:
    return next((_BYTES[suffix] for suffix in suffixes if suffix in _BYTES), 4)


def _address(instruction: Instruction, state: State) -> LaneValue | None:
    """Return the address in each thread; None if unknown."""
    matches = filter(None, map(_ADDRESS.match, split_operands(instruction.operands)))
    match = next(matches, None)
    if match is None:
        return None
    total: LaneValue | None = ZERO
    for sign, term, suffixes in _TERM.findall(match[1]):
        value: LaneValue | None
        if term.startswith("0x"):
            number = int(f"{sign}{term}", 16) & 0xFFFFFFFF
            value = LaneValue((number,) * len(ZERO.numbers))
        elif term.startswith("U"):
            value = ZERO if term == "URZ" else UNKNOWN_UNIFORM
        else:
            value = register_value(state, term[1:], instruction.predicate)
            scale = re.search(r"\.X(\d+)", suffixes)
            if value is not None and scale is not None:
                scaled = tuple(at * int(scale[1]) & 0xFFFFFFFF for at in value.numbers)
                value = LaneValue(scaled, value.is_open)
        total = add_values(total, value)
    return total
