"""How a maker's listings are read: what a backend gives for its targets."""

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
    """Per instruction, in order, how many vector registers hold a value that may still be read.

    ``peaks`` are the instructions (indices) at which the count is greatest.
    """

    counts: tuple[int, ...]
    peak: int
    peaks: tuple[int, ...]


class ListingReader(ABC):
    """Reads the listings of one backend. Nothing is raised for text that means nothing to it."""

    dialect: ClassVar[str] = "gas"
    """What a highlighter calls the language: a name of Pygments', or of a lexer of ours."""

    registers_title: ClassVar[str] = "registers"
    """What is counted as live."""

    @abstractmethod
    def parse(self, text: str) -> Listing:
        """Functions, instructions, and where each comes from in the source."""

    @abstractmethod
    def normalized(self, instruction: Instruction) -> str:
        """What two instructions must share to be compared: without registers' numbers, labels
        and addresses."""

    def dialect_of(self, text: str) -> str:  # noqa: ARG002 - most have one
        """The language of this listing, for those whose builds give it in several."""
        return self.dialect

    def describe(self, mnemonic: str) -> Description | None:  # noqa: ARG002
        """What an instruction does, in our words; None for one that is not known."""
        return None

    def live_registers(self, function: Function) -> LiveRegisters | None:  # noqa: ARG002
        """Live vector registers at each instruction; None where the reader does not follow them."""
        return None

    def hazards(self, function: Function) -> tuple[Hazard, ...]:
        """What its instructions show to be likely to cost time, with their lines."""
        return private_memory_hazards(function)


def reader_of(target: Target) -> ListingReader:
    """The reader of the target's backend."""
    reader: ListingReader = load_part(backend_of(target).listings)
    return reader
