"""A built kernel and the call to check and time, as plain data with JSON conversion."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from cattrs import Converter

from scheduler.codegen.benchmark_request import BenchmarkRequest, TensorArg, register_arg_union
from scheduler.ir.codec import decode, make_codec


@dataclass(frozen=True)
class BuiltCandidate:
    """A request and the library built for it. ``key`` is unique within the run."""

    key: str
    library: str
    request: BenchmarkRequest

    def to_json(self) -> dict[str, Any]:
        """Return the candidate as a JSON object."""
        data: dict[str, Any] = _codec().unstructure(self)
        return data

    @staticmethod
    def from_json(data: Any) -> BuiltCandidate:
        """Read the result of ``to_json``. Raises ``UserError`` naming the invalid field."""
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
