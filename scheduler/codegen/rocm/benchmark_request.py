"""A request whose numbers must fit the types of an exported C++ function."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.codegen.benchmark_request import BenchmarkRequest, ScalarArg
from scheduler.ir.bindings import format_bindings
from scheduler.outcome import UserError

_BITS = {"i32": 32, "i64": 64}


@dataclass(frozen=True)
class ROCmBenchmarkRequest(BenchmarkRequest):
    """One HIP kernel at one binding. Raises ``UserError`` for sizes beyond the types of its
    function's arguments, before a worker process is asked to call it."""

    def __post_init__(self) -> None:
        for arg in self.args:
            if not isinstance(arg, ScalarArg) or arg.type not in _BITS:
                continue
            bits = _BITS[arg.type]
            if not -(1 << bits - 1) <= arg.value < 1 << bits - 1:
                sizes = format_bindings(self.bindings)
                raise UserError(
                    f"{self.kernel} takes {arg.name} as a number of {bits} bits, which cannot hold"
                    f" {arg.value}: choose smaller sizes than {sizes}"
                )
