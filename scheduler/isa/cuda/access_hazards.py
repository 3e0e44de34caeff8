"""Finds bank conflicts in shared memory and uncoalesced accesses to global memory if the addresses
are known: CUDA C++ Programming Guide, "Shared memory" and "Device memory accesses".

Shared memory has 32 banks of 4 bytes; a pass serves one word of each bank, for 32 threads at 4
bytes, 16 at 8, 8 at 16. Global memory is read and written in sectors of 32 bytes. Counts are for a
block's first warp with all threads active, at a base that is aligned as the access needs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
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
        for index, one in enumerate(function.instructions)
        if one.mnemonic.partition(".")[0] in _SHARED_OPS | _GLOBAL_OPS
    }
    before = states(function, indices) if indices else {}
    banks, sectors = [], []
    for index in sorted(before):
        instruction = function.instructions[index]
        address = _address(instruction, before[index])
        if address is None:
            continue
        if instruction.mnemonic.partition(".")[0] in _SHARED_OPS:
            banks.append(_passes(instruction, address))
        else:
            sectors.append(_sectors(instruction, address))
    return (*_conflicts(banks), *_uncoalesced(sectors))


def _conflicts(accesses: list[Access]) -> Iterator[Hazard]:
    found = [one for one in accesses if one.count > one.least]
    if found:
        count, least = sum(one.count for one in found), sum(one.least for one in found)
        text = (
            f"{_plural(len(found), 'access', 'accesses')} to shared memory: {count} bank passes"
            f" instead of {least} in the first warp"
        )
        yield Hazard(HazardKind.BANK_CONFLICTS, text, tuple(one.line for one in found))


def _uncoalesced(accesses: list[Access]) -> Iterator[Hazard]:
    # An unaligned access may touch one more sector and still be coalesced.
    found = [one for one in accesses if one.count >= 2 * one.least and one.count > one.least + 1]
    if found:
        count, least = sum(one.count for one in found), sum(one.least for one in found)
        text = (
            f"{_plural(len(found), 'access', 'accesses')} to global memory: {count} sectors of"
            f" {_SECTOR} B instead of {least} in the first warp"
        )
        yield Hazard(HazardKind.UNCOALESCED, text, tuple(one.line for one in found))


def _plural(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _passes(instruction: Instruction, address: LaneValue) -> Access:
    name, *suffixes = instruction.mnemonic.split(".")
    threads, width = list(address.numbers), _width(suffixes)
    if name in ("LDSM", "STSM"):  # eight threads address the rows of each matrix
        matrices = next((int(one) for one in suffixes if one in ("2", "4")), 1)
        threads, width = threads[: 8 * matrices], _MATRIX_BYTES
    at_once = _BANKS * _WORD // max(width, _WORD)
    groups = [threads[at : at + at_once] for at in range(0, len(threads), at_once)]
    return Access(instruction.line, sum(_pass_count(one, width) for one in groups), len(groups))


def _pass_count(threads: list[int], width: int) -> int:
    words = {at // _WORD + word for at in threads for word in range(max(1, width // _WORD))}
    return max(Counter(word % _BANKS for word in words).values())


def _sectors(instruction: Instruction, address: LaneValue) -> Access:
    width = _width(instruction.mnemonic.split(".")[1:])
    # Addresses are relative to an aligned one and may be negative.
    near = [at - (at >> 31 << 32) for at in address.numbers]
    sectors = {byte // _SECTOR for at in near for byte in (at, at + width - 1)}
    least = -(-len(set(near)) * width // _SECTOR)
    return Access(instruction.line, len(sectors), max(1, least))


def _width(suffixes: list[str]) -> int:
    return next((_BYTES[one] for one in suffixes if one in _BYTES), 4)


def _address(instruction: Instruction, state: State) -> LaneValue | None:
    """Return the address in each thread; None if unknown."""
    found = (
        match for one in split_operands(instruction.operands) if (match := _ADDRESS.match(one))
    )
    match = next(found, None)
    if match is None:
        return None
    total: LaneValue | None = ZERO
    for sign, term, suffixes in _TERM.findall(match[1]):
        total = add_values(total, _term(sign, term, suffixes, state, instruction.predicate))
    return total


def _term(sign: str, term: str, suffixes: str, state: State, guard: str) -> LaneValue | None:
    if term.startswith("0x"):
        number = int(f"{sign}{term}", 16) & 0xFFFFFFFF
        return LaneValue((number,) * len(ZERO.numbers))
    if term.startswith("U"):
        return ZERO if term == "URZ" else UNKNOWN_UNIFORM
    value = register_value(state, term[1:], guard)
    scale = re.search(r"\.X(\d+)", suffixes)
    if value is None or scale is None:
        return value
    return LaneValue(tuple(at * int(scale[1]) & 0xFFFFFFFF for at in value.numbers), value.is_open)
