"""The input that a worker process needs to model one kernel at concrete sizes, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from cattrs import Converter

from scheduler.benchmark.case_builder import index_limits
from scheduler.codegen.benchmark_request import BenchmarkRequest, register_arg_union
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.kernel import Launch
from scheduler.ir.codec import decode, make_codec
from scheduler.ir.graph import Expr
from scheduler.targets import Target
from scheduler.tuning.problems import TuningProblem


@dataclass(frozen=True)
class ModelJob:
    """One kernel on one modelled device. ``launches`` and ``workspace_bytes`` are the rendered
    kernel's; ``index_limits`` gives, for buffers of indices, the length of the indexed axis."""

    device: str
    request: BenchmarkRequest
    launches: tuple[Launch, ...]
    workspace_bytes: Expr
    index_limits: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        data: dict[str, Any] = _codec().unstructure(self)
        return data

    @staticmethod
    def from_json(data: Any) -> ModelJob:
        """Parse what ``to_json`` returned. Raises ``UserError`` naming the wrong field."""
        return decode(_codec(), data, ModelJob, "job")


def job_of(problem: TuningProblem, caller: TemplateCaller, target: Target, device: str) -> ModelJob:
    """Return the job of one candidate at the problem's sizes."""
    return ModelJob(
        device=device,
        request=caller.benchmark_request(target.name, problem.bindings),
        launches=tuple(caller.kernel.launches),
        workspace_bytes=caller.kernel.workspace_bytes,
        index_limits=index_limits(problem.node, dict(problem.bindings)),
    )


@cache
def _codec() -> Converter:
    codec = make_codec()
    register_arg_union(codec)
    return codec
