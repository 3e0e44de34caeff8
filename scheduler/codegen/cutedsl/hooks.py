"""Functions of a kernel's source that a template calls at each point: what is stored there, and
what is read of a computed operand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.codegen.printing.lines import Lines


@dataclass(frozen=True)
class Hook:
    """One such function: the template gives ``given``; ``arguments`` are the kernel's."""

    name: str
    given: tuple[str, ...]
    arguments: tuple[str, ...]
    body: str

    @property
    def definition(self) -> str:
        """The function, for the source before its kernels."""
        parameters = ", ".join((*self.given, *self.arguments))
        return f"@cute.jit\ndef {self.name}({parameters}):\n{self.body}"

    def call(self, **given: str) -> str:
        """A call of it, with a text for each of ``given``. Raises ``KeyError`` for one that has
        none."""
        return f"{self.name}({', '.join((*(given[name] for name in self.given), *self.arguments))})"


def hook(name: str, given: tuple[str, ...], lines: Lines, arguments: Sequence[str]) -> Hook:
    """The function of these lines, which takes what they use of the kernel's arguments."""
    body = str(lines)
    used = set(re.findall(r"\w+", body))
    return Hook(name, given, tuple(one for one in arguments if one in used), body)
