"""What a worker process needs to call one built kernel: plain data, JSON both ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class BufferArgument:
    """A pointer argument: the case's buffer of that name."""

    buffer: str
    is_output: bool


@dataclass(frozen=True)
class ScalarArgument:
    """A size, stride or other scalar, already at the case's bindings."""

    value: int | float


Argument = BufferArgument | ScalarArgument


@dataclass(frozen=True)
class BuiltCandidate:
    """A kernel's library with the arguments of one call. ``key`` names it within the run."""

    key: str
    library: str
    symbol: str
    arg_types: tuple[str, ...]
    arguments: tuple[Argument, ...]

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> BuiltCandidate:
        """From what ``to_json`` gave."""
        arguments = tuple(
            ScalarArgument(a["value"]) if "value" in a else BufferArgument(**a)
            for a in data["arguments"]
        )
        return BuiltCandidate(
            data["key"], data["library"], data["symbol"], tuple(data["arg_types"]), arguments
        )

    @property
    def outputs(self) -> frozenset[str]:
        """Names of the buffers that the call writes."""
        return frozenset(
            a.buffer for a in self.arguments if isinstance(a, BufferArgument) and a.is_output
        )
