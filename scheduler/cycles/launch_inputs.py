"""Converts a benchmark request for the emulator: memory with its buffers, and the launches.

No buffer is allocated: a page is filled when a wave first accesses it. Contents repeat after 64
KiB, which affects no address: floats are normal, integers small or, if they are indices into
another tensor, within it (``benchmark/case_builder.py`` draws the same kinds).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from scheduler.codegen.benchmark_request import BenchmarkRequest, ScalarArg, TensorArg
from scheduler.codegen.kernel import Launch as RenderedLaunch
from scheduler.errors import UserError
from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import encode_values
from scheduler.ir.index.functions import evaluate
from scheduler.ir.storage import Array
from scheduler.isa.rocm.emulator.launch import Launch
from scheduler.isa.rocm.emulator.memory import Memory

WORKSPACE = "workspace"
_FIRST = 1 << 32
_LARGE, _SMALL = 1 << 21, 1 << 12  # alignment of buffers with a page of 2 MiB, and of others
_REPEATS = 1 << 16  # bytes
_PLAIN_INTEGERS = 8


def prepare_launches(
    launches: Sequence[RenderedLaunch],
    request: BenchmarkRequest,
    inputs: Mapping[str, Array] | None = None,
    *,
    index_limits: Mapping[str, int] | None = None,
    workspace_bytes: int = 0,
    seed: int = 0,
) -> tuple[tuple[Launch, ...], Memory]:
    """Return the launches of a kernel's exported function for a request, and their memory.

    ``inputs`` are given storages by buffer name; ``index_limits`` gives, for buffers of indices,
    the number of valid ones (``benchmark/case_builder.py:index_limits``). A launch with an empty
    grid is left out, as the exported function does.

    Raises:
        UserError: a launch takes an argument that the request does not have.
    """
    memory = Memory()
    rng = np.random.default_rng(seed)
    values: dict[str, int | float] = {}
    next_address = _FIRST
    buffers: dict[str, int] = {}
    for arg in request.args:
        if isinstance(arg, ScalarArg):
            values[arg.name] = arg.value
            continue
        if arg.buffer not in buffers:
            size = storage_bytes(arg)
            given = (inputs or {}).get(arg.buffer)
            fill = None
            if given is None and not arg.is_output:
                fill = buffer_filler(
                    DType.from_label(arg.dtype), (index_limits or {}).get(arg.buffer), rng
                )
            buffers[arg.buffer] = next_address
            data = None if given is None else np.ascontiguousarray(given).tobytes()
            memory.map(arg.buffer, next_address, max(1, size), data=data, fill=fill)
            step = _LARGE if size >= _LARGE else _SMALL
            next_address = -(-(next_address + max(1, size) + _SMALL) // step) * step
        values[arg.name] = buffers[arg.buffer]
    if workspace_bytes:
        values[WORKSPACE] = next_address
        memory.map(WORKSPACE, next_address, workspace_bytes)
    prepared = []
    for launch in launches:
        try:
            x, y, z = (evaluate(size, request.numbers) for size in launch.grid)
            arguments = tuple(values[name] for name in launch.args)
        except KeyError as missing:
            raise UserError(f"{request.kernel}: {launch.function} takes {missing}") from None
        if x * y * z:
            dynamic = launch.lds_bytes if launch.dynamic_lds else 0
            prepared.append(Launch(launch.function, (x, y, z), launch.block, dynamic, arguments))
    return tuple(prepared), memory


def storage_bytes(arg: TensorArg) -> int:
    """Return the bytes from the first element to the last, at least one element."""
    last = sum((size - 1) * stride for size, stride in zip(arg.size, arg.stride, strict=True))
    return (max(0, last) + 1) * DType.from_label(arg.dtype).itemsize


def buffer_filler(
    dtype: DType, limit: int | None, rng: np.random.Generator
) -> Callable[[int, int], bytes]:
    """Return a function that fills a buffer from an offset; offset and size are in bytes."""
    count = _REPEATS // dtype.itemsize
    if dtype is DType.BOOL:
        drawn: Array = rng.integers(0, 2, count).astype(dtype.numpy)
    elif not dtype.is_inexact:
        drawn = rng.integers(0, limit or _PLAIN_INTEGERS, count, dtype=np.int64)
        drawn = drawn.astype(dtype.numpy)
    else:
        normal: Array = rng.standard_normal(count)
        if dtype.is_complex:
            normal = normal + 1j * rng.standard_normal(count)
        drawn = encode_values(normal, dtype).astype(dtype.numpy)
    data = drawn.tobytes()

    def fill(offset: int, size: int) -> bytes:
        start = offset % len(data)
        repeats = -(-(start + size) // len(data))
        return (data * repeats)[start : start + size]

    return fill
