"""Functions of a kernel's source that a template calls at each point: the stores, and the reads of
a computed operand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.codegen.printing.lines import Lines


@dataclass(frozen=True)
class Hook:
    """One such function: the template passes ``given``; ``arguments`` are the kernel's."""

    name: str
    given: tuple[str, ...]
    arguments: tuple[str, ...]
    body: str

    @property
    def definition(self) -> str:
        """Return the function, for the source before its kernels."""
        parameters = ", ".join((*self.given, *self.arguments))
        return f"@cute.jit\ndef {self.name}({parameters}):\n{self.body}"

    def call(self, **given: str) -> str:
        """Return a call with a text for each of ``given``. Raises ``KeyError`` if one is
        missing."""
        return f"{self.name}({', '.join((*(given[name] for name in self.given), *self.arguments))})"


def hook(name: str, given: tuple[str, ...], lines: Lines, arguments: Sequence[str]) -> Hook:
    """Return the function of these lines, which takes the kernel's arguments that it uses."""
    body = str(lines)
    used = set(re.findall(r"\w+", body))
    return Hook(name, given, tuple(one for one in arguments if one in used), body)
