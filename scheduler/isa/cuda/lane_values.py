"""Computes the register values of each thread of a warp, if they follow from the thread's number.

This is an abstract interpretation of SASS over basic blocks. A value is known if, for thread t of a
block's first warp, it is a number computed from t, plus a term that is the same for all threads (an
argument, the block's number, a loop's counter). Counting the banks and sectors of an address
requires this form. All other values are unknown, and nothing is reported about them.

It assumes that the threads of a warp are neighbours in x, which holds if a block's size in x is a
multiple of 32 or the block is one-dimensional, and that they take the same branches.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass

from scheduler.isa.listing import Function, Instruction

LANES = 32
_MASK = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class LaneValue:
    """A 32-bit number per thread; if ``is_open``, plus a term common to all threads."""

    numbers: tuple[int, ...]
    is_open: bool = False

    @property
    def is_uniform(self) -> bool:
        """Whether all threads have the same number."""
        return self.numbers.count(self.numbers[0]) == len(self.numbers)

    @property
    def constant(self) -> int | None:
        """The number, if it is known and the same in all threads."""
        return self.numbers[0] if not self.is_open and self.is_uniform else None


def _uniform(number: int) -> LaneValue:
    return LaneValue((number & _MASK,) * LANES)


ZERO = _uniform(0)
UNKNOWN_UNIFORM = LaneValue(ZERO.numbers, is_open=True)
THREADS = LaneValue(tuple(range(LANES)))


@dataclass(frozen=True, slots=True)
class _RegisterValue:
    """A register's value, known if ``guard`` (a predicate, "" for none) holds."""

    value: LaneValue
    guard: str = ""


State = Mapping[int, _RegisterValue | None]
"""Registers by number; None: an unknown value was written. Missing: never written."""
_REGISTER = re.compile(r"([-~]?)R(\d+|Z)(?:\.reuse)?$")
_NUMBER = re.compile(r"-?0x[0-9a-f]+$|-?\d+$")
_UNIFORM = re.compile(r"[-~]?(?:UR(?:\d+|Z)|c\[)")
_PREDICATE = re.compile(r"!?U?P(?:\d|T)$")


def states(function: Function, indices: Set[int]) -> dict[int, State]:
    """Return the state before each of these instructions that is reachable."""
    blocks = function.blocks
    entry: dict[int, dict[int, _RegisterValue | None]] = {0: {}} if blocks else {}
    waiting = [0] if blocks else []
    while waiting:
        number = min(waiting)
        waiting.remove(number)
        state = dict(entry[number])
        for index in range(blocks[number].first, blocks[number].end):
            _transfer(state, function.instructions[index])
        for successor in blocks[number].successors:
            before = entry.get(successor)
            after = state if before is None else _meet(before, state)
            if before != after:
                entry[successor] = dict(after)
                if successor not in waiting:
                    waiting.append(successor)
    found: dict[int, State] = {}
    for number, state in entry.items():
        for index in range(blocks[number].first, blocks[number].end):
            if index in indices:
                found[index] = dict(state)
            _transfer(state, function.instructions[index])
    return found


def _meet(one: State, other: State) -> dict[int, _RegisterValue | None]:
    """Merge the states of two paths: values may differ by a term common to all threads. A register
    written on only one path keeps that value: it is read only if that path was taken."""
    return {
        register: _meet_values(one[register], other[register])
        if register in one and register in other
        else one.get(register, other.get(register))
        for register in {**one, **other}
    }


def _meet_values(
    held: _RegisterValue | None, rival: _RegisterValue | None
) -> _RegisterValue | None:
    if held is None or rival is None or held == rival:
        return held if held == rival else None
    if held.guard or rival.guard:
        return None
    pairs = zip(held.value.numbers, rival.value.numbers, strict=True)
    steps = {(b - a) & _MASK for a, b in pairs}
    return _RegisterValue(LaneValue(held.value.numbers, is_open=True)) if len(steps) == 1 else None


def _transfer(state: dict[int, _RegisterValue | None], instruction: Instruction) -> None:
    name, *suffixes = instruction.mnemonic.split(".")
    guard = instruction.predicate
    if name == "CALL":
        state.update(dict.fromkeys(range(-8, 255)))
    operands = split_operands(instruction.operands)
    value = _result(name, suffixes, operands, state, guard)
    _set_predicates(state, name, operands, guard)
    target = next((one for one in operands if not _PREDICATE.match(one)), "")
    match = re.match(r"R(\d+)\b", target)
    if match is None or name in _RESULTLESS:
        return
    first = int(match[1])
    for register in range(first, first + _width(name, suffixes)):
        before = state.get(register)
        is_known = value is not None and (register == first or name == "CS2R")
        state[register] = _write_value(state, before, value, guard) if is_known and value else None


def _write_value(
    state: State, before: _RegisterValue | None, value: LaneValue, guard: str
) -> _RegisterValue:
    if not guard or (before is not None and before.value == value):
        return (
            _RegisterValue(value)
            if before is None or not before.guard
            else _RegisterValue(value, guard)
        )
    both_same = (
        before is not None and not before.guard and before.value.is_uniform and value.is_uniform
    )
    return (
        _RegisterValue(UNKNOWN_UNIFORM)
        if both_same and _is_uniform(state, guard)
        else _RegisterValue(value, guard)
    )


def _set_predicates(
    state: dict[int, _RegisterValue | None], name: str, operands: list[str], guard: str
) -> None:
    """Update predicates that may be written: values guarded by them become unknown. A predicate
    that is the same in all threads is kept as a register with a negative number."""
    named = [one.lstrip("!") for one in operands if _PREDICATE.match(one)]
    sources = [_source(one, state, guard) for one in operands if not _PREDICATE.match(one)]
    same = all(one is not None and one.is_uniform for one in sources)
    same &= name in _SETS and all(_is_uniform(state, one) for one in [*named[2:], guard])
    for one in named:
        for register, held in state.items():
            if held is not None and held.guard.lstrip("!") == one:
                state[register] = None
    for one in named[:2] if name in _SETS else named:
        if one[1:].isdecimal():
            state[_predicate_index(one)] = _RegisterValue(UNKNOWN_UNIFORM) if same else None


def _predicate_index(predicate: str) -> int:
    return -1 - int(predicate.lstrip("!")[1:])


def _is_uniform(state: State, predicate: str) -> bool:
    """Whether it holds in all threads or in none."""
    bare = predicate.lstrip("!")
    return (
        bare in ("", "PT", "UPT") or bare[0] == "U" or state.get(_predicate_index(bare)) is not None
    )


_SETS = frozenset({"ISETP", "PLOP3"})  # they write two predicates and read the others
_RESULTLESS = frozenset(
    "ST STG STS STL STSM RED REDG ISETP FSETP HSETP2 BAR BRA EXIT BSSY BSYNC".split()  # noqa: SIM905
)
# Uniform inputs give uniform results.
_PURE = frozenset(
    {"IABS", "I2F", "I2FP", "F2I", "MUFU", "SEL", "IMNMX", "VIMNMX", "IMAD", "IADD3", "IADD"}
    | {"VIADD", "LEA", "SHF", "LOP3", "PRMT", "SGXT", "POPC", "FLO", "FMUL", "FADD", "FFMA"}
    | {"FSEL", "MOV"}
)
_BYTES = {"64": 2, "128": 4, "256": 8, "WIDE": 2}


def _width(name: str, suffixes: list[str]) -> int:
    """Return how many registers are written, rather too many: four for a matrix product."""
    if name.endswith("MMA"):
        return 4 if name != "HGMMA" else 128
    if name == "LDSM":
        return 4
    if name == "CS2R":
        return 1 if "32" in suffixes else 2
    if name[0] == "D" or (name in ("F2F", "I2F", "F2I") and {"F64", "S64", "U64"} & set(suffixes)):
        return 2
    return max((_BYTES[one] for one in suffixes if one in _BYTES), default=1)


def split_operands(operands: str) -> list[str]:
    """Split the operands; brackets contain no commas."""
    return [part.strip() for part in operands.split(",") if part.strip()]


def _result(
    name: str, suffixes: list[str], operands: list[str], state: State, guard: str
) -> LaneValue | None:
    """Return the value that an instruction writes; None if unknown."""
    if name == "S2R":
        return {"SR_TID.X": THREADS, "SR_LANEID": THREADS}.get(operands[-1], UNKNOWN_UNIFORM)
    if name == "CS2R":
        return ZERO if operands[-1] == "SRZ" else UNKNOWN_UNIFORM
    if name == "LDC":
        return UNKNOWN_UNIFORM if "[R" not in operands[-1] else None
    sources = [
        _source(one, state, guard)
        for one in [one for one in operands if not _PREDICATE.match(one)][1:]
    ]
    rule = _RULES.get(name)
    found = rule(suffixes, sources) if rule else None
    if name in ("MOV", "R2UR") and sources:
        found = sources[0]
    if (
        found is None
        and name in _PURE
        and all(one is not None and one.is_uniform for one in sources)
    ):
        predicates = [one for one in operands if _PREDICATE.match(one)]
        return UNKNOWN_UNIFORM if all(_is_uniform(state, one) for one in predicates) else None
    return found


def _source(operand: str, state: State, guard: str) -> LaneValue | None:
    if match := _REGISTER.match(operand):
        value = register_value(state, match[2], guard)
        if value is None or not match[1]:
            return value
        if match[1] == "-":
            return LaneValue(tuple(-a & _MASK for a in value.numbers), value.is_open)
        return None if value.is_open else LaneValue(tuple(~a & _MASK for a in value.numbers))
    if _NUMBER.match(operand):
        return _uniform(int(operand, 0))
    return UNKNOWN_UNIFORM if _UNIFORM.match(operand) else None


def register_value(state: State, register: str, guard: str) -> LaneValue | None:
    """Return a register's value at an instruction with this guard; ``register`` is its number or
    Z."""
    if register == "Z":
        return ZERO
    held = state.get(int(register))
    return held.value if held is not None and held.guard in ("", guard) else None


def add_values(one: LaneValue | None, other: LaneValue | None) -> LaneValue | None:
    """Return the sum."""
    if one is None or other is None:
        return None
    numbers = tuple((a + b) & _MASK for a, b in zip(one.numbers, other.numbers, strict=True))
    return LaneValue(numbers, one.is_open or other.is_open)


def _multiply(one: LaneValue | None, other: LaneValue | None) -> LaneValue | None:
    if one is None or other is None:
        return None
    for value, factor in ((one, other.constant), (other, one.constant)):
        if factor is not None:
            return LaneValue(tuple(a * factor & _MASK for a in value.numbers), value.is_open)
    return UNKNOWN_UNIFORM if one.is_uniform and other.is_uniform else None


def _shift_right(
    value: LaneValue | None, by: LaneValue | None, *, signed: bool
) -> LaneValue | None:
    if value is None or by is None:
        return None
    shift = by.constant
    if shift is None or value.is_open:
        return UNKNOWN_UNIFORM if value.is_uniform and by.is_uniform else None
    if signed:
        return LaneValue(tuple((a - (a >> 31 << 32)) >> shift & _MASK for a in value.numbers))
    return LaneValue(tuple(a >> shift for a in value.numbers))


def _funnel_shift(suffixes: list[str], sources: list[LaneValue | None]) -> LaneValue | None:
    """SHF: ``d, low, by, high``; a right shift shifts the high half."""
    if len(sources) != 3:
        return None
    low, by, high = sources
    if "L" in suffixes and "HI" not in suffixes:
        factor = by.constant if by else None
        return None if factor is None else _multiply(low, _uniform(1 << factor))
    if "HI" in suffixes:
        return _shift_right(high, by, signed="S32" in suffixes)
    return _shift_right(low, by, signed=False) if high == ZERO else None


def _lea(suffixes: list[str], sources: list[LaneValue | None]) -> LaneValue | None:
    """LEA: ``d, a, b, shift``: a << shift + b; HI adds the high half of a instead."""
    if len(sources) < 3 or "X" in suffixes:
        return None
    a, b, shift = sources[0], sources[1], sources[-1]
    by = shift.constant if shift else None
    if by is None:
        return None
    if "HI" not in suffixes:
        return add_values(_multiply(a, _uniform(1 << by)), b)
    has_high = len(sources) > 3 and sources[2] != ZERO
    return None if has_high else add_values(_shift_right(a, _uniform(32 - by), signed=False), b)


def _lop3(_: list[str], sources: list[LaneValue | None]) -> LaneValue | None:
    """LOP3: ``d, a, b, c, table``: the table's bit for each bit of the three."""
    if len(sources) < 4 or any(one is None for one in sources[:4]):
        return None
    a, b, c, table = (one for one in sources[:4] if one is not None)
    rule = table.constant
    if rule is None:
        return None
    if any(one.is_open for one in (a, b, c)):
        return UNKNOWN_UNIFORM if all(one.is_uniform for one in (a, b, c)) else None
    numbers = []
    for x, y, z in zip(a.numbers, b.numbers, c.numbers, strict=True):
        found = 0
        for case in range(8):
            if rule >> case & 1:
                found |= (x if case & 4 else ~x) & (y if case & 2 else ~y) & (z if case & 1 else ~z)
        numbers.append(found & _MASK)
    return LaneValue(tuple(numbers))


def _imad(suffixes: list[str], sources: list[LaneValue | None]) -> LaneValue | None:
    """IMAD and its forms: ``d, a, b, c``: a * b + c; of WIDE the low half."""
    if len(sources) != 3 or {"HI", "X"} & set(suffixes):
        return None
    return add_values(_multiply(sources[0], sources[1]), sources[2])


def _iadd3(suffixes: list[str], sources: list[LaneValue | None]) -> LaneValue | None:
    if "X" in suffixes or not sources:
        return None
    total: LaneValue | None = ZERO
    for one in sources:
        total = add_values(total, one)
    return total


def _sgxt(suffixes: list[str], sources: list[LaneValue | None]) -> LaneValue | None:
    """SGXT.U32: ``d, a, n``: the lowest n bits of a."""
    if "U32" not in suffixes or len(sources) != 2 or sources[1] is None:
        return None
    count = sources[1].constant
    return (
        None if count is None else _lop3([], [sources[0], _uniform((1 << count) - 1), ZERO, _AND])
    )


_AND = _uniform(0xC0)


_RULES = {
    **dict.fromkeys(("IADD3", "VIADD", "IADD"), _iadd3),
    **dict.fromkeys(("IMAD",), _imad),
    **{"SHF": _funnel_shift, "LEA": _lea, "LOP3": _lop3, "SGXT": _sgxt},
}
