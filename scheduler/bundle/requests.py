"""A bundle's call at concrete sizes, as the plain data that a worker process takes."""

from __future__ import annotations

import json

from scheduler.bundle.manifest import Manifest
from scheduler.codegen.kernel import KernelCall
from scheduler.codegen.rocm.benchmark_request import ROCmBenchmarkRequest, ScalarArg, TensorArg
from scheduler.ir.bindings import Bindings
from scheduler.ir.indexing import evaluate
from scheduler.ir.storage import bind_buffer


def request_of(
    manifest: Manifest, call: KernelCall, target: str, bindings: Bindings
) -> ROCmBenchmarkRequest:
    """The request for one call; ``KeyError`` for a symbol that has no binding."""
    call = call.at(bindings)
    entry = manifest.kernels[call.kernel]
    args: list[TensorArg | ScalarArg] = []
    scalars = dict(bindings)
    for arg in entry.args:
        value = call.args[arg.name]
        if isinstance(value, str):
            bound = bind_buffer(manifest.buffers[value], bindings)
            args.append(
                TensorArg(
                    arg.name, value, bound.dtype.label, bound.size, bound.stride, arg.is_output
                )
            )
        else:
            scalars[arg.name] = evaluate(value, bindings)
            args.append(ScalarArg(arg.name, arg.type, scalars[arg.name]))
    return ROCmBenchmarkRequest(
        kernel=call.kernel,
        symbol=entry.symbol,
        source="",  # it is built already
        target=target,
        args=tuple(args),
        bindings=dict(bindings),
        workspace_bytes=evaluate(entry.workspace_bytes, scalars),
    )


def signature(request: ROCmBenchmarkRequest) -> str:
    """Equal for two calls of one kernel with equal sizes, whatever their buffers are called."""
    said = [
        [arg.dtype, arg.size, arg.stride] if isinstance(arg, TensorArg) else arg.value
        for arg in request.args
    ]
    return json.dumps([request.kernel, said])
