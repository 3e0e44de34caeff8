"""One candidate: a rendered kernel with the call that a node makes of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.codegen.benchmark_request import BenchmarkRequest, request_at
from scheduler.codegen.kernel import ConfigValue, KernelCall, RenderedKernel
from scheduler.codegen.rocm.buffer import ROCmTemplateBuffer
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import evaluate
from scheduler.ir.operations import Buffer


@dataclass(frozen=True)
class TemplateCaller:
    """A candidate for a scheduler node.

    ``description`` is one line for the autotune log; ``buffers`` are those of the call.
    """

    node: str
    problem: str
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

    def info_dict(self) -> dict[str, ConfigValue]:
        """What the ledger and the pages say of the candidate."""
        return {
            "backend": "ROCm",
            "template": self.kernel.template,
            "problem": self.problem,
            "name": self.kernel.name,
            **self.kernel.config,
        }

    def output(self) -> ROCmTemplateBuffer:
        """What the template leaves in the IR."""
        written = {arg.name for arg in self.kernel.args if arg.is_output}
        pointers = [arg.name for arg in self.kernel.args if arg.type == "ptr"]
        return ROCmTemplateBuffer(
            self.kernel.template,
            tuple(str(self.call.args[name]) for name in pointers if name not in written),
            tuple(self.buffers[str(self.call.args[name])] for name in pointers if name in written),
            self.kernel.workspace_bytes,
        )

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
        )
