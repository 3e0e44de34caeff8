"""The columns of the table of AMD's instructions.

Sources: AMD's instruction set architecture documents of CDNA 2 to 4, RDNA 3 and 4; LLVM's AMDGPU
assembler syntax.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from scheduler.isa.instructions import Kind


class IssueClass(IntEnum):
    """How a SIMD issues an instruction."""

    VECTOR = 0
    MATRIX = 1
    SCALAR = 2
    SCALAR_LOAD = 3
    LDS = 4
    MEMORY = 5
    BRANCH = 6
    WAIT = 7
    BARRIER = 8
    PAUSE = 9  # s_nop, s_sleep: idle for a time
    PRIORITY = 10
    FREE = 11  # consumed from the instruction buffer without an issue slot
    END = 12


class Counter(IntEnum):
    """A counter of outstanding operations, which ``s_waitcnt`` waits for.

    They are those of gfx12, which has separate ones for loads, stores, LDS and scalar loads. On
    gfx9 stores count as loads; up to gfx11 LDS and scalar loads share one counter.
    """

    LOADS = 0
    STORES = 1
    LDS = 2
    SCALARS = 3


class Effect(StrEnum):
    """What an instruction does to its wave."""

    VALUES = "values"  # it reads or writes registers or memory
    NOTHING = "nothing"  # a wait, a hint, a cache operation: no values change
    JUMPS = "jumps"
    BRANCHES = "branches"  # continues at a label or with the next instruction
    CALLS = "calls"  # may return to the next instruction; also a trap
    BARRIER = "barrier"
    ENDS = "ends"


@dataclass(frozen=True, slots=True)
class LocalAccess:
    """How an instruction accesses LDS; ``crossbar``: lanes exchange values, no bank is accessed."""

    reads: bool = False
    writes: bool = False
    atomic: bool = False
    crossbar: bool = False


LDS_READ, LDS_WRITE = LocalAccess(reads=True), LocalAccess(writes=True)
LDS_ATOMIC = LocalAccess(writes=True, atomic=True)  # those that return the old value also read
LDS_EXCHANGE = LocalAccess(reads=True, crossbar=True)


@dataclass(frozen=True)
class Row:
    """The instructions whose names, without their encoding, match ``pattern``; the first row wins.

    ``title`` and ``text`` describe them for readers of listings ("": not described) and may contain
    groups of the pattern as ``{name}``. ``kind`` and ``issue`` are those of the unit if None.
    ``rate`` is the cycle model's constant for the cycles of the vector pipe, if not "vector".
    ``counters`` are those that a wait waits for. ``accumulates``: the old result is also a source.
    """

    pattern: str
    title: str = ""
    text: str = ""
    kind: Kind | None = None
    issue: IssueClass | None = None
    effect: Effect = Effect.VALUES
    rate: str = ""
    counters: tuple[Counter, ...] = ()
    local: LocalAccess = LocalAccess()
    accumulates: bool = False


@dataclass(frozen=True)
class Unit:
    """The instructions with a prefix. ``is_wide``: their encoding has 8 bytes."""

    prefix: str
    kind: Kind
    issue: IssueClass
    rows: tuple[Row, ...] = ()
    is_wide: bool = False
