"""One candidate: a rendered kernel with the call that a node makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from scheduler.codegen.benchmark_request import BenchmarkRequest, request_at
from scheduler.codegen.kernel import KernelCall, RenderedKernel
from scheduler.ir.operations import Buffer


@dataclass(frozen=True)
class TemplateCaller:
    """A candidate for a scheduler node.

    ``description`` is one line for the autotune log; ``buffers`` are those of the call.
    """

    request_type: ClassVar[type[BenchmarkRequest]] = BenchmarkRequest

    node: str
    kernel: RenderedKernel
    call: KernelCall
    buffers: Mapping[str, Buffer]
    description: str

    @property
    def name(self) -> str:
        """The kernel's name, which is also the exported symbol."""
        return self.kernel.name

    def benchmark_request(self, target: str, bindings: Mapping[str, int]) -> BenchmarkRequest:
        """The request for one target and one binding of the symbolic sizes."""
        return request_at(
            dict(bindings),
            self.call,
            self.kernel.args,
            self.buffers,
            symbol=self.kernel.symbol,
            target=target,
            request_type=self.request_type,
        )
