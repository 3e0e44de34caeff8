"""A bundle's call at concrete sizes, as plain data for a worker process."""

from __future__ import annotations

from scheduler.bundle.manifest import Manifest
from scheduler.codegen.benchmark_request import BenchmarkRequest, make_request
from scheduler.codegen.kernel import KernelCall
from scheduler.ir.bindings import Bindings


def request_of(
    manifest: Manifest, call: KernelCall, target: str, bindings: Bindings
) -> BenchmarkRequest:
    """Return the request for one call. Raises ``KeyError`` for a symbol without a binding."""
    call = call.select_variant(bindings)
    entry = manifest.kernels[call.kernel]
    return make_request(
        bindings,
        call,
        entry.args,
        manifest.buffers,
        symbol=entry.symbol,
        target=target,
    )
