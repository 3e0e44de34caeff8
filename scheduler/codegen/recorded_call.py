"""The request of a recorded kernel, whether or not the generator still makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler.codegen.benchmark_request import BenchmarkRequest, CFunctionRequest, make_request
from scheduler.codegen.kernel import KernelArg, KernelCall
from scheduler.errors import UserError
from scheduler.ir.bindings import Bindings
from scheduler.ir.graph import Expr
from scheduler.ir.index.text import parse_expr
from scheduler.ir.operations import Buffer


@dataclass(frozen=True)
class RecordedCall:
    """A kernel's C function and a node's call of it: ``args`` are ``{name, type, is_output,
    dtype}``, ``call`` maps each to a buffer's name or an expression's text.

    ``buffer_names`` maps the buffer names of the recorded call to those of the present call.
    """

    kernel: str
    args: Sequence[Mapping[str, Any]]
    call: Mapping[str, str]
    buffer_names: Mapping[str, str]

    def request(
        self, target: str, bindings: Bindings, buffers: Mapping[str, Buffer]
    ) -> BenchmarkRequest:
        """Return the request at concrete sizes. Raises ``UserError`` if the call does not fit these
        buffers."""
        try:
            args = [KernelArg(**arg) for arg in self.args]
            values: dict[str, str | Expr] = {}
            for arg in args:
                value = self.call[arg.name]
                is_buffer = arg.type == "ptr"
                values[arg.name] = self.buffer_names[value] if is_buffer else parse_expr(value)
            return make_request(
                bindings,
                KernelCall(self.kernel, values),
                args,
                buffers,
                symbol=self.kernel,
                target=target,
                request_type=CFunctionRequest,
            )
        except (KeyError, TypeError) as error:
            raise UserError(
                f"{self.kernel} was recorded for a different call: {error} is unknown"
            ) from None
