"""Reads a maker's listings: the interface that a backend implements for its targets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from scheduler.isa.describe import Description
from scheduler.isa.hazards import Hazard, private_memory_hazards
from scheduler.isa.listing import Function, Instruction, Listing
from scheduler.targets import Target
from scheduler.targets.registry import backend_of, load_part


@dataclass(frozen=True)
class LiveRegisters:
    """For each instruction, in order, the number of vector registers whose value may still be read.

    ``peaks`` are the indices of the instructions with the greatest count.
    """

    counts: tuple[int, ...]
    peak: int
    peaks: tuple[int, ...]


class ListingReader(ABC):
    """Reads the listings of one backend. It raises nothing for text it does not recognize."""

    dialect: ClassVar[str] = "gas"
    """The highlighter's name of the language: Pygments', or one of Kiln's lexers."""

    registers_title: ClassVar[str] = "registers"
    """What is counted as live."""

    @abstractmethod
    def parse(self, text: str) -> Listing:
        """Return functions, instructions, and their positions in the source."""

    @abstractmethod
    def normalized(self, instruction: Instruction) -> str:
        """Return the form in which instructions are compared: without registers' numbers, labels
        and addresses."""

    def dialect_of(self, text: str) -> str:  # noqa: ARG002 - most have one
        """Return the language of this listing, for backends whose builds give several."""
        return self.dialect

    def describe(self, mnemonic: str) -> Description | None:  # noqa: ARG002
        """Return a short description of an instruction; None if it is unknown."""
        return None

    def live_registers(self, function: Function) -> LiveRegisters | None:  # noqa: ARG002
        """Return the live vector registers at each instruction; None if the reader does not track
        them."""
        return None

    def hazards(self, function: Function) -> tuple[Hazard, ...]:
        """Return the performance hazards that its instructions show, with their lines."""
        return private_memory_hazards(function)


def reader_of(target: Target) -> ListingReader:
    """Return the reader of the target's backend."""
    reader: ListingReader = load_part(backend_of(target).listings)
    return reader
