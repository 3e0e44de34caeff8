"""A built kernel with the call that is to be checked and timed: plain data, JSON both ways."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from cattrs import Converter

from scheduler.codegen.benchmark_request import BenchmarkRequest, TensorArg, register_arg_union
from scheduler.ir.codec import decode, make_codec


@dataclass(frozen=True)
class BuiltCandidate:
    """A request with the library that was built for it. ``key`` names it within the run."""

    key: str
    library: str
    request: BenchmarkRequest

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        data: dict[str, Any] = _codec().unstructure(self)
        return data

    @staticmethod
    def from_json(data: Any) -> BuiltCandidate:
        """From what ``to_json`` gave. Raises ``UserError`` naming the field that is wrong."""
        return decode(_codec(), data, BuiltCandidate, "candidate")

    @property
    def outputs(self) -> frozenset[str]:
        """Names of the buffers that the call writes."""
        tensors = (arg for arg in self.request.args if isinstance(arg, TensorArg))
        return frozenset(arg.buffer for arg in tensors if arg.is_output)


@cache
def _codec() -> Converter:
    codec = make_codec()
    register_arg_union(codec)
    return codec
