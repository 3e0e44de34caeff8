"""One candidate: a rendered kernel and a node's call of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from scheduler.codegen.benchmark_request import BenchmarkRequest, make_request
from scheduler.codegen.kernel import KernelCall, RenderedKernel
from scheduler.ir.operations import Buffer


@dataclass(frozen=True)
class TemplateBuffer:
    """The output of a template, which replaces a node's operations: the names of the buffers that
    its kernel reads, and those that it writes."""

    template: str
    inputs: tuple[str, ...]
    outputs: tuple[Buffer, ...]


@dataclass(frozen=True)
class TemplateCaller:
    """A candidate for a scheduler node.

    ``description`` is one line for the autotune log; ``buffers`` are the call's buffers.
    """

    request_type: ClassVar[type[BenchmarkRequest]] = BenchmarkRequest
    buffer_type: ClassVar[type[TemplateBuffer]] = TemplateBuffer

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
        """Return the request for one target and one binding of the symbolic sizes."""
        return make_request(
            dict(bindings),
            self.call,
            self.kernel.args,
            self.buffers,
            symbol=self.kernel.symbol,
            target=target,
            request_type=self.request_type,
        )

    def output(self) -> TemplateBuffer:
        """Return the template's output, which replaces the node's operations."""
        written = {arg.name for arg in self.kernel.args if arg.is_output}
        pointers = [arg.name for arg in self.kernel.args if arg.type == "ptr"]
        return self.buffer_type(
            self.kernel.template,
            tuple(str(self.call.args[name]) for name in pointers if name not in written),
            tuple(self.buffers[str(self.call.args[name])] for name in pointers if name in written),
        )
