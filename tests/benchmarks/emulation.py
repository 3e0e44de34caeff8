"""How fast CPU emulation is: a matrix product through the real path, from rendering to running.

    python -m tests.benchmarks.emulation [SIZE]

The goal that was set: 512 x 512 x 512 in f16 in at most 2 s on one core.
"""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path

from scheduler.build.cache import CodeCache
from scheduler.build.toolchains import bundled_clang
from scheduler.codegen.benchmark_request import TensorArg
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.cpu_count import usable_cpus
from scheduler.ir.dtypes import DType
from scheduler.runtime.cpu import CpuDevice
from scheduler.targets import Target, find, names
from tests.unit.matrix.contractions import matmul
from tests.unit.matrix.running import Runner


def main(size: int) -> None:
    """Print milliseconds a launch, the best of three, for each emulated target and type."""
    cores = usable_cpus()
    sys.stdout.write(f"{size}^3, milliseconds on 1 core and on {cores}\n")
    with tempfile.TemporaryDirectory() as folder:
        cache = CodeCache(Path(folder))
        for target in (find(name) for name in names() if find(name).emulates):
            runner = Runner(cache, bundled_clang(cache), target.name)
            for dtype in (DType.F16, DType.BF16, DType.F32):
                schedule = matmul(size, size, size, dtype)
                scheduling = ROCmCPPScheduling(schedule, (find(target.emulates),))
                caller = scheduling.default(schedule.nodes[0])
                library = runner.build(caller).directory / "kernel.so"
                times = [measure(caller, library, target, count) for count in (1, cores)]
                line = "\t".join((target.name, dtype.label, *(f"{time:.1f}" for time in times)))
                sys.stdout.write(f"{line}\n")


def measure(caller: TemplateCaller, library: Path, target: Target, threads: int) -> float:
    """Milliseconds of one launch with that many host threads, on zeros."""
    request = caller.benchmark_request(target.name, {})
    device = CpuDevice(target, threads)
    try:
        kernel = device.load(library, request.symbol, request.arg_types)
        args = [
            zeros(device, arg) if isinstance(arg, TensorArg) else arg.value for arg in request.args
        ]
        workspace = device.allocate(kernel.workspace_bytes(args))
        return min(device.time([(kernel, args, workspace)]).total_ns for _ in range(3)) / 1e6
    finally:
        device.close()


def zeros(device: CpuDevice, arg: TensorArg) -> int:
    """Memory of a contiguous argument."""
    nbytes = math.prod(arg.size) * DType.from_label(arg.dtype).itemsize
    pointer = device.allocate(nbytes)
    device.fill(pointer, 0, nbytes)
    return pointer


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 512)
