"""One candidate: a rendered kernel with the call that a node makes of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from scheduler.codegen.benchmark_request import BenchmarkRequest, request_at
from scheduler.codegen.kernel import KernelCall, RenderedKernel
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import evaluate
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

    def hash_key(self, *, target: str, toolchain: str, bindings: Mapping[str, int]) -> str:
        """Identity of a measurement: nothing that can change a time may be missing here.

        ``target`` is the resolved arch (never ``native``), ``toolchain`` names compiler, version,
        headers and flags. The configuration counts as well as the source, the arguments' values
        as well as their types.
        """
        said = {
            "template": self.kernel.template,
            "config": dict(sorted(self.kernel.config.items())),
            "source": hashlib.sha256(self.kernel.source.encode()).hexdigest(),
            "call": [
                [arg.name, self._at(self.call.args[arg.name], bindings)]
                for arg in self.kernel.args
                if arg.type != "ptr"
            ],
            "tensors": [
                self._tensor_key(arg.name, bindings)
                for arg in self.kernel.args
                if arg.type == "ptr"
            ],
            "target": target,
            "toolchain": toolchain,
        }
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    def _tensor_key(self, name: str, bindings: Mapping[str, int]) -> list[object]:
        buffer = self.buffers[str(self.call.args[name])]
        size = [self._at(extent, bindings) for extent in buffer.size]
        stride = [self._at(extent, bindings) for extent in buffer.stride]
        return [buffer.dtype.label, size, stride]

    def _at(self, value: str | Expr, bindings: Mapping[str, int]) -> int:
        if isinstance(value, str):
            raise TypeError(f"buffer {value} stands where a number is due")
        return evaluate(value, dict(bindings))

    def benchmark_request(self, target: str, bindings: Mapping[str, int]) -> BenchmarkRequest:
        """The request for one target and one binding of the symbolic sizes."""
        return request_at(
            dict(bindings),
            self.call,
            self.kernel.args,
            self.buffers,
            self.kernel.workspace_bytes,
            symbol=self.kernel.symbol,
            target=target,
            source=self.kernel.source,
            request_type=self.request_type,
        )
