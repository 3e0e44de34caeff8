"""One instruction of a target: its effect and its known cost."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler import targets
from scheduler.cycles.instruction_cost import Fact, cost_of
from scheduler.isa.reader import reader_of

UNKNOWN = "unknown instruction"


@dataclass(frozen=True)
class InstructionPage:
    """An instruction. ``title`` and ``text`` describe its effect, ``facts`` its cost; ``note`` says
    what is unknown about the cost."""

    target: str
    name: str
    known: bool
    title: str
    text: str
    facts: tuple[Fact, ...]
    note: str


def instruction_page(target: str, mnemonic: str) -> InstructionPage:
    """Describe an instruction (no query). Raises ``UserError`` for an unknown target. An unknown
    instruction gets a page that says so."""
    description = targets.find(target)
    meaning = reader_of(description).describe(mnemonic)
    if meaning is None:
        text = f"There is no description of {mnemonic} on {target}."
        return InstructionPage(target, mnemonic, False, UNKNOWN, text, (), "")
    cost = cost_of(description, mnemonic)
    return InstructionPage(
        *(target, mnemonic, True, meaning.title, meaning.text), facts=cost.facts, note=cost.note
    )
