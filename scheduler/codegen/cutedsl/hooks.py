"""Functions of a kernel's source that a template calls at each point: the stores, and the reads of
a computed operand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.codegen.printing.lines import Lines


@dataclass(frozen=True)
class Hook:
    """One such function: the template passes ``parameters``; ``arguments`` are the kernel's."""

    name: str
    parameters: tuple[str, ...]
    arguments: tuple[str, ...]
    body: str

    @property
    def definition(self) -> str:
        """Return the function, for the source before its kernels."""
        names = ", ".join((*self.parameters, *self.arguments))
        return f"@cute.jit\ndef {self.name}({names}):\n{self.body}"

    def call(self, **texts: str) -> str:
        """Return a call with a text for each of ``parameters``. Raises ``KeyError`` if one is
        missing."""
        values = (texts[name] for name in self.parameters)
        return f"{self.name}({', '.join((*values, *self.arguments))})"


def make_hook(
    name: str, parameters: tuple[str, ...], lines: Lines, arguments: Sequence[str]
) -> Hook:
    """Return the function of these lines, which takes the kernel's arguments that it uses."""
    body = str(lines)
    used_names = set(re.findall(r"\w+", body))
    return Hook(name, parameters, tuple(arg for arg in arguments if arg in used_names), body)
