"""A built kernel with the call that is to be checked and timed: plain data, JSON both ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler.codegen.benchmark_request import BenchmarkRequest, TensorArg


@dataclass(frozen=True)
class BuiltCandidate:
    """A request with the library that was built for it. ``key`` names it within the run."""

    key: str
    library: str
    request: BenchmarkRequest

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"key": self.key, "library": self.library, "request": self.request.to_json()}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> BuiltCandidate:
        """From what ``to_json`` gave."""
        request = BenchmarkRequest.from_json(data["request"])
        return BuiltCandidate(data["key"], data["library"], request)

    @property
    def outputs(self) -> frozenset[str]:
        """Names of the buffers that the call writes."""
        tensors = (arg for arg in self.request.args if isinstance(arg, TensorArg))
        return frozenset(arg.buffer for arg in tensors if arg.is_output)
