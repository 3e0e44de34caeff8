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
from collections.abc import Callable, Mapping, Set
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
    state_by_index: dict[int, State] = {}
    for number, state in entry.items():
        for index in range(blocks[number].first, blocks[number].end):
            if index in indices:
                state_by_index[index] = dict(state)
            _transfer(state, function.instructions[index])
    return state_by_index


def _meet(first: State, second: State) -> dict[int, _RegisterValue | None]:
    """Merge the states of two paths: values may differ by a term common to all threads. A register
    written on only one path keeps that value: it is read only if that path was taken."""
    merged = {**second, **first}
    for register in first.keys() & second.keys():
        a, b = first[register], second[register]
        if a == b:
            continue
        merged[register] = None
        if a is None or b is None or a.guard or b.guard:
            continue
        pairs = zip(a.value.numbers, b.value.numbers, strict=True)
        if len({(y - x) & _MASK for x, y in pairs}) == 1:
            merged[register] = _RegisterValue(LaneValue(a.value.numbers, is_open=True))
    return merged


def _transfer(state: dict[int, _RegisterValue | None], instruction: Instruction) -> None:
    name, *suffixes = instruction.mnemonic.split(".")
    guard = instruction.predicate
    if name == "CALL":
        state.update(dict.fromkeys(range(-8, 255)))
    operands = split_operands(instruction.operands)
    value = _result(name, suffixes, operands, state, guard)
    _set_predicates(state, name, operands, guard)
    target = next((operand for operand in operands if not _PREDICATE.match(operand)), "")
    match = re.match(r"R(\d+)\b", target)
    if match is None or name in _RESULTLESS:
        return
    first = int(match[1])
    for register in range(first, first + _width(name, suffixes)):
        if value is None or (register != first and name != "CS2R"):
            state[register] = None
            continue
        before = state.get(register)
        new = _RegisterValue(value, guard)
        if not guard or (before is not None and before.value == value):
            if before is None or not before.guard:
                new = _RegisterValue(value)
        elif before is not None and not before.guard:
            both_uniform = before.value.is_uniform and value.is_uniform
            if both_uniform and _is_uniform(state, guard):
                new = _RegisterValue(UNKNOWN_UNIFORM)
        state[register] = new


def _set_predicates(
    state: dict[int, _RegisterValue | None], name: str, operands: list[str], guard: str
) -> None:
    """Update predicates that may be written: values guarded by them become unknown. A predicate
    that is the same in all threads is kept as a register with a negative number."""
    predicates = [operand.lstrip("!") for operand in operands if _PREDICATE.match(operand)]
    sources = [_source(each, state, guard) for each in operands if not _PREDICATE.match(each)]
    is_uniform = (
        all(source is not None and source.is_uniform for source in sources)
        and name in _SETS
        and all(_is_uniform(state, predicate) for predicate in [*predicates[2:], guard])
    )
    for predicate in predicates:
        for register, known in state.items():
            if known is not None and known.guard.lstrip("!") == predicate:
                state[register] = None
    for predicate in predicates[:2] if name in _SETS else predicates:
        if predicate[1:].isdecimal():
            value = _RegisterValue(UNKNOWN_UNIFORM) if is_uniform else None
            state[_predicate_index(predicate)] = value


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
    return max((_BYTES[suffix] for suffix in suffixes if suffix in _BYTES), default=1)


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
    plain = [operand for operand in operands if not _PREDICATE.match(operand)]
    sources = [_source(operand, state, guard) for operand in plain[1:]]
    if name in ("MOV", "R2UR") and sources:
        value = sources[0]
    else:
        value = _RULES[name](suffixes, sources) if name in _RULES else None
    if value is not None or name not in _PURE:
        return value
    predicates = [operand for operand in operands if _PREDICATE.match(operand)]
    is_uniform = all(source is not None and source.is_uniform for source in sources) and all(
        _is_uniform(state, predicate) for predicate in predicates
    )
    return UNKNOWN_UNIFORM if is_uniform else None


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
    known = state.get(int(register))
    return known.value if known is not None and known.guard in ("", guard) else None


def add_values(a: LaneValue | None, b: LaneValue | None) -> LaneValue | None:
    """Return the sum."""
    if a is None or b is None:
        return None
    numbers = tuple((x + y) & _MASK for x, y in zip(a.numbers, b.numbers, strict=True))
    return LaneValue(numbers, a.is_open or b.is_open)


def _multiply(a: LaneValue | None, b: LaneValue | None) -> LaneValue | None:
    if a is None or b is None:
        return None
    for value, factor in ((a, b.constant), (b, a.constant)):
        if factor is not None:
            return LaneValue(tuple(x * factor & _MASK for x in value.numbers), value.is_open)
    return UNKNOWN_UNIFORM if a.is_uniform and b.is_uniform else None


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


_Rule = Callable[[list[str], list[LaneValue | None]], LaneValue | None]
_RULES: dict[str, _Rule] = {}
_AND = _uniform(0xC0)  # LOP3's table of a & b


def _rule(*names: str) -> Callable[[_Rule], _Rule]:
    """Register what instructions compute, given their suffixes and their sources."""

    def register(rule: _Rule) -> _Rule:
        _RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


@_rule("SHF")
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


@_rule("LEA")
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


@_rule("LOP3")
def _lop3(_: list[str], sources: list[LaneValue | None]) -> LaneValue | None:
    """LOP3: ``d, a, b, c, table``: the table's bit for each bit of the three."""
    known = [source for source in sources[:4] if source is not None]
    if len(known) < 4:
        return None
    a, b, c, table = known
    rule = table.constant
    if rule is None:
        return None
    if a.is_open or b.is_open or c.is_open:
        return UNKNOWN_UNIFORM if a.is_uniform and b.is_uniform and c.is_uniform else None
    numbers = []
    for x, y, z in zip(a.numbers, b.numbers, c.numbers, strict=True):
        result = 0
        for case in range(8):
            if rule >> case & 1:
                result |= (
                    (x if case & 4 else ~x) & (y if case & 2 else ~y) & (z if case & 1 else ~z)
                )
        numbers.append(result & _MASK)
    return LaneValue(tuple(numbers))


@_rule("IMAD")
def _imad(suffixes: list[str], sources: list[LaneValue | None]) -> LaneValue | None:
    """IMAD and its forms: ``d, a, b, c``: a * b + c; of WIDE the low half."""
    if len(sources) != 3 or {"HI", "X"} & set(suffixes):
        return None
    return add_values(_multiply(sources[0], sources[1]), sources[2])


@_rule("IADD3", "VIADD", "IADD")
def _iadd3(suffixes: list[str], sources: list[LaneValue | None]) -> LaneValue | None:
    if "X" in suffixes or not sources:
        return None
    total: LaneValue | None = ZERO
    for source in sources:
        total = add_values(total, source)
    return total


@_rule("SGXT")
def _sgxt(suffixes: list[str], sources: list[LaneValue | None]) -> LaneValue | None:
    """SGXT.U32: ``d, a, n``: the lowest n bits of a."""
    if "U32" not in suffixes or len(sources) != 2 or sources[1] is None:
        return None
    count = sources[1].constant
    return (
        None if count is None else _lop3([], [sources[0], _uniform((1 << count) - 1), ZERO, _AND])
    )
