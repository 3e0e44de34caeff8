"""Finds an instruction's row, which holds what its mnemonic alone says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from scheduler.isa.describe import Description, describe_match
from scheduler.isa.instructions import Kind
from scheduler.isa.rocm.instruction_set.memory import LDS, MEMORY
from scheduler.isa.rocm.instruction_set.row import Effect, IssueClass, LocalAccess, Row, Unit
from scheduler.isa.rocm.instruction_set.scalar import SCALAR
from scheduler.isa.rocm.instruction_set.vector import MATRIX, VECTOR
from scheduler.isa.rocm.instruction_set.words import TYPE_NAMES

_UNITS = (
    Unit("v_", Kind.VECTOR, IssueClass.VECTOR, (*MATRIX, *VECTOR)),
    Unit("s_", Kind.SCALAR, IssueClass.SCALAR, SCALAR),
    Unit("ds_", Kind.LDS, IssueClass.LDS, LDS, is_wide=True),
    *(
        Unit(prefix, Kind.GLOBAL, IssueClass.MEMORY, MEMORY, is_wide=True)
        for prefix in ("global_", "buffer_", "flat_", "tbuffer_", "image_")
    ),
    Unit("scratch_", Kind.SCRATCH, IssueClass.MEMORY, MEMORY, is_wide=True),
)
_NO_ROW = Row("")
# No name is longer, and matching a row's pattern may take time quadratic in the length.
_MAX_CHARACTERS = 80
_ENCODING = re.compile(r"(?:_(e32|e64))?(?:_(dpp8?|sdwa))?$")
_SOURCES = {
    "dpp": " Its first operand comes from another lane of the row (DPP).",
    "dpp8": " Its first operand comes from another lane of eight (DPP8).",
    "sdwa": " It takes bytes or halves of its registers (SDWA).",
}
_HOST = Unit("", Kind.OTHER, IssueClass.SCALAR)
_HOST_BRANCH = Unit("", Kind.BRANCH, IssueClass.SCALAR)
_HOST_BRANCHES = re.compile(r"j\w+|call\w?|ret\w?|b|bl|br|blr|cbn?z|tbn?z|b\.\w\w")
_HOST_ENDS = frozenset(["ret", "retq", "ud2"])
_HOST_JUMPS = frozenset(["jmp", "jmpq", "b", "br"])


@dataclass(frozen=True)
class Opcode:
    """A mnemonic: its ``name`` without its encoding, its unit and its row. ``size`` is e32, e64 or
    "", ``source`` is dpp, dpp8, sdwa or ""."""

    name: str
    size: str
    source: str
    unit: Unit
    row: Row

    @property
    def kind(self) -> Kind:
        """The class of instructions that it is counted in."""
        return self.row.kind or self.unit.kind

    @property
    def issue(self) -> IssueClass:
        return self.unit.issue if self.row.issue is None else self.row.issue

    @property
    def is_wide(self) -> bool:
        """Whether every encoding has at least 8 bytes."""
        return (
            self.unit.is_wide
            or self.kind is Kind.MATRIX
            or self.issue is IssueClass.SCALAR_LOAD
            or self.name.startswith("v_pk_")
        )

    @property
    def local(self) -> LocalAccess:
        """Its access to LDS; an atomic operation reads if it returns the old value."""
        local = self.row.local
        return replace(local, reads=True) if "_rtn_" in self.name else local

    @cached_property
    def description(self) -> Description | None:
        """What it does; None if no text is known."""
        if not self.row.title:
            return None
        match = re.fullmatch(self.row.pattern, self.name)
        assert match is not None
        matched = describe_match(match, self.row.title, self.row.text, TYPE_NAMES)
        return replace(matched, text=matched.text + _SOURCES.get(self.source, ""))


def find_opcode(mnemonic: str) -> Opcode:
    """Return what the table says of a mnemonic, whatever its encoding; it need not be known."""
    if len(mnemonic) > _MAX_CHARACTERS:
        unit = next((unit for unit in _UNITS if mnemonic.startswith(unit.prefix)), _HOST)
        return Opcode(mnemonic, "", "", unit, _NO_ROW)
    return _match_rows(mnemonic)


@lru_cache(maxsize=4096)
def _match_rows(mnemonic: str) -> Opcode:
    encoding = _ENCODING.search(mnemonic)
    assert encoding is not None  # it may be empty
    name = mnemonic[: encoding.start()]
    for unit in _UNITS:
        if name.startswith(unit.prefix):
            rows = (row for row in unit.rows if re.fullmatch(row.pattern, name))
            size, source = encoding.groups("")
            return Opcode(name, size, source, unit, next(rows, _NO_ROW))
    is_branch = _HOST_BRANCHES.fullmatch(mnemonic)
    return Opcode(mnemonic, "", "", _HOST_BRANCH if is_branch else _HOST, _NO_ROW)


def kind_of(mnemonic: str) -> Kind:
    """Return the class of an AMD instruction; for other machines, branch or other."""
    return find_opcode(mnemonic).kind


def falls_through(mnemonic: str) -> bool:
    """Whether the next instruction may be executed after it."""
    return (
        find_opcode(mnemonic).row.effect not in (Effect.ENDS, Effect.JUMPS)
        and mnemonic not in _HOST_ENDS
        and mnemonic not in _HOST_JUMPS
    )


def describe(mnemonic: str) -> Description | None:
    """Describe an instruction, whatever its encoding; None for an unknown name."""
    return find_opcode(mnemonic).description


def has_return(words: Iterable[str]) -> bool:
    """Whether the modifiers of an atomic operation request the old value."""
    return any(
        word in ("glc", "sc0") or (word.startswith("th:TH_ATOMIC") and word.endswith("RETURN"))
        for word in words
    )
