"""What the C compiler wrote, without its operands' meaning."""

from __future__ import annotations

from kiln_tiny.scheduling import SOURCE_FILE
from scheduler.isa import assembly
from scheduler.isa.instructions import Kind
from scheduler.isa.listing import Instruction, Listing
from scheduler.isa.reader import ListingReader


def _kind_of(mnemonic: str) -> Kind:
    return Kind.BRANCH if mnemonic.startswith(("j", "b")) else Kind.SCALAR


class TinyReader(ListingReader):
    """Every instruction that is no jump is a scalar one."""

    def parse(self, text: str) -> Listing:
        syntax = assembly.Syntax(SOURCE_FILE, _kind_of, lambda mnemonic: "ret" not in mnemonic)
        return assembly.parse(text, syntax)

    def normalized(self, instruction: Instruction) -> str:
        return instruction.mnemonic


READER = TinyReader()
