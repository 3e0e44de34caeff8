"""Somebody else's kernels for a problem: their launches, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scheduler.cycles.launches.parser import Argument, Buffer, LaunchSpec
from scheduler.ir.dtypes import DType

SOURCES = Path(__file__).with_name("sources")
_POINTERS = {DType.F16: "*fp16", DType.F32: "*fp32"}
_SPECIALIZED = 16  # Triton's own launcher says of numbers and addresses that these divide them
_SMALL_BYTES = 1 << 31


@dataclass(frozen=True)
class Kernel:
    """One launch of a function of ``sources/<file>.py``: arguments at run time by their names, in
    order, constants when it is compiled, Triton's options."""

    file: str
    function: str
    arguments: Mapping[str, Buffer | int | float]
    constants: Mapping[str, int | bool]
    grid: tuple[int, int, int]
    options: Mapping[str, int] = field(default_factory=dict)

    def request(self, processor: str, wave: int) -> dict[str, object]:
        """What the child process compiles: specialised as Triton's launcher does it."""
        given = self.arguments.items()
        pointers = {name: value for name, value in given if isinstance(value, Buffer)}
        numbers = {name: value for name, value in given if isinstance(value, int)}
        return {
            "file": str(SOURCES / f"{self.file}.py"),
            "function": self.function,
            "signature": {name: _type(value) for name, value in given},
            "constants": dict(self.constants),
            "aligned": [
                *pointers,
                *(name for name, value in numbers.items() if value % _SPECIALIZED == 0),
            ],
            "small": [name for name, value in pointers.items() if value.bytes < _SMALL_BYTES],
            "options": dict(self.options),
            "processor": processor,
            "wave": wave,
        }

    def launch(self, wave: int, lds_bytes: int) -> LaunchSpec:
        """With the two arguments that Triton adds: memory for itself and for its profiler, which
        these kernels have none of."""
        given: tuple[Argument, ...] = (*self.arguments.values(), None, None)
        block = (self.options.get("num_warps", 4) * wave, 1, 1)
        return LaunchSpec(self.function, self.grid, block, lds_bytes, given)


@dataclass(frozen=True)
class Peer:
    """One way to compute a problem: its kernels run one after the other."""

    title: str
    kernels: tuple[Kernel, ...]


def f16(*shape: int) -> Buffer:
    """Memory of so many elements."""
    return _buffer(DType.F16, shape)


def f32(*shape: int) -> Buffer:
    """Memory of so many elements."""
    return _buffer(DType.F32, shape)


def _buffer(dtype: DType, shape: tuple[int, ...]) -> Buffer:
    elements = 1
    for size in shape:
        elements *= size
    return Buffer(dtype, elements)


def _type(value: Buffer | float) -> str:
    if isinstance(value, Buffer):
        return _POINTERS[value.dtype]
    return "i32" if isinstance(value, int) else "fp32"
