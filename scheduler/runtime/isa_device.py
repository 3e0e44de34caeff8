"""Devices that emulate the instructions of a code object: ``isa:gfx942`` and so on.

Such a device loads not a library but a file of ``EmulatedKernel``: the listing and the launches of
the exported function. No code of the file runs natively. A launch is complete when the call
returns; its time is unrelated to a GPU's time.
"""

from __future__ import annotations

import bisect
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from cattrs import Converter

from scheduler.arithmetic import round_up
from scheduler.codegen.kernel import KernelArg, Launch
from scheduler.errors import UserError
from scheduler.ir.codec import decode, make_codec
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import evaluate
from scheduler.isa.rocm.emulator.launch import Launch as Emulated
from scheduler.isa.rocm.emulator.limits import Limits
from scheduler.isa.rocm.emulator.memory import PAGE, Memory
from scheduler.isa.rocm.emulator.program import Program, program_of
from scheduler.isa.rocm.emulator.run import EmulationResult, run
from scheduler.runtime.device import DeviceError, DeviceInfo, LoadedKernel, Timing
from scheduler.runtime.library import elapsed_ns
from scheduler.targets.generations import AMD_GPUS, AMD_TARGETS

PREFIX = "isa:"
#: Processors whose instructions the emulator supports.
PROCESSORS = tuple(gpu.processor for gpu in AMD_GPUS if gpu.emulated)
WORKSPACE = "workspace"
_ALIGNMENT = 4096
_FIRST_ADDRESS = 1 << 32
# Limits of one launch, which stop a kernel that does not terminate.
_LAUNCH_LIMITS = Limits(steps=1 << 40, calls=1 << 26)
_MAX_WAVES = 256  # maximum waves run at a time
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class EmulatedKernel:
    """A kernel's listing for ``processor``; ``args``, ``launches`` and ``workspace_bytes`` are
    those of the rendered kernel."""

    processor: str
    listing: str
    symbol: str
    args: tuple[KernelArg, ...]
    launches: tuple[Launch, ...]
    workspace_bytes: Expr

    def to_json(self) -> str:
        return json.dumps(_codec().unstructure(self))

    @staticmethod
    def from_json(text: str, what: str) -> EmulatedKernel:
        """Read a kernel. Raises ``UserError`` whose message begins with ``what``."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            raise UserError(f"{what} is not the file of an emulated kernel") from None
        return decode(_codec(), data, EmulatedKernel, what)


def is_emulated(device_id: str) -> bool:
    """Whether a device of that id loads files of ``EmulatedKernel`` instead of libraries."""
    return device_id.startswith(PREFIX)


def require_timing(device_id: str) -> None:
    """Raise ``UserError`` if times of a device of that id are unrelated to any GPU's time."""
    if is_emulated(device_id):
        processor = device_id.removeprefix(PREFIX)
        raise UserError(
            f"{device_id} emulates instructions and measures no times:"
            f" use model:{processor} to tune without a GPU, and {device_id} to verify"
        )


@dataclass(eq=False)
class _Block:
    """A block of allocated memory and its content."""

    address: int
    data: Bytes


class IsaDevice:
    """One GPU's instructions, emulated in this process."""

    def __init__(self, processor: str) -> None:
        self._info = device_info(processor)
        self._blocks: dict[int, _Block] = {}
        self._next = _FIRST_ADDRESS

    @property
    def info(self) -> DeviceInfo:
        return self._info

    def allocate(self, nbytes: int) -> int:
        """Allocate zeroed memory at an unused address; 0 bytes gives 0."""
        if nbytes < 0:
            raise ValueError(f"{nbytes} bytes cannot be allocated")
        if nbytes == 0:
            return 0
        try:
            block = _Block(self._next, np.zeros(nbytes, np.uint8))
        except MemoryError:
            raise DeviceError("hipErrorOutOfMemory", f"cannot allocate {nbytes} bytes") from None
        # The gap keeps an out-of-bounds access out of the next block.
        self._next += round_up(nbytes, _ALIGNMENT) + _ALIGNMENT
        self._blocks[block.address] = block
        return block.address

    def free(self, pointer: int) -> None:
        if pointer and self._blocks.pop(pointer, None) is None:
            raise DeviceError("hipErrorInvalidValue", f"{pointer:#x} was not allocated here")

    def write(self, pointer: int, data: npt.NDArray[np.generic]) -> None:
        source = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        self._slice(pointer, source.nbytes)[:] = source

    def read(self, pointer: int, out: npt.NDArray[np.generic]) -> None:
        if not out.flags.c_contiguous:
            raise ValueError("memory is read into contiguous arrays only")
        out.reshape(-1).view(np.uint8)[:] = self._slice(pointer, out.nbytes)

    def fill(self, pointer: int, byte: int, nbytes: int) -> None:
        self._slice(pointer, nbytes)[:] = byte

    def load(self, library: Path, symbol: str, arg_types: Sequence[str]) -> LoadedKernel:
        """Load a file of ``EmulatedKernel``. Raises ``DeviceError`` if it is invalid or for another
        processor or function."""
        try:
            kernel = EmulatedKernel.from_json(library.read_text(), library.name)
            programs = {
                launch.function: program_of(kernel.listing, launch.function, kernel.processor)
                for launch in kernel.launches
            }
        except (OSError, UnicodeDecodeError, UserError) as error:
            raise DeviceError("hipErrorInvalidKernelFile", str(error)) from None
        other_processors = [
            program for program in programs.values() if program.processor != self._info.target
        ]
        if other_processors or kernel.symbol != symbol:
            message = f"{library.name} contains {kernel.symbol} for {kernel.processor}"
            raise DeviceError("hipErrorInvalidKernelFile", message)
        if [arg.type for arg in kernel.args] != list(arg_types):
            raise DeviceError("hipErrorInvalidKernelFile", f"{symbol} has other argument types")
        return _EmulatedFunction(self, kernel, programs)

    def synchronize(self) -> None:
        """Do nothing: launches are complete when they return."""

    def time(self, launches: Sequence[tuple[LoadedKernel, Sequence[int | float], int]]) -> Timing:
        """Return the wall time of the emulation."""
        return Timing(elapsed_ns(launches))

    def close(self) -> None:
        self._blocks.clear()

    def launch(self, program: Program, launch: Emulated) -> None:
        """Run all blocks of a launch. Raises ``DeviceError`` for an error that a GPU would report,
        and for instructions that the emulator does not support."""
        pages = sum(-(-block.data.size // PAGE) for block in self._blocks.values())
        memory = Memory(pages=1 + pages + 64)
        starts = sorted(self._blocks)
        regions = []
        for start in starts:
            data = self._blocks[start].data
            regions.append(
                memory.map(hex(start), start, data.size, fill=partial(_read_bytes, data))
            )
        waves_per_block = -(-launch.threads // program.lanes)
        blocks_per_run = max(1, _MAX_WAVES // waves_per_block)
        limits = replace(_LAUNCH_LIMITS, waves=max(_LAUNCH_LIMITS.waves, waves_per_block))
        for first in range(0, launch.blocks, blocks_per_run):
            blocks = range(first, min(first + blocks_per_run, launch.blocks))
            _raise_for_result(program, run(program, launch, memory, blocks, limits, traced=False))
        for region in regions:
            memory.copy_out(region, self._blocks[region.address].data)

    def _slice(self, pointer: int, nbytes: int) -> Bytes:
        """Return a range of memory, which must lie within one block."""
        if nbytes == 0:
            return np.zeros(0, np.uint8)
        starts = sorted(self._blocks)
        index = bisect.bisect_right(starts, pointer) - 1
        if index >= 0:
            block = self._blocks[starts[index]]
            offset = pointer - block.address
            if offset + nbytes <= block.data.size:
                return block.data[offset : offset + nbytes]
        message = f"{nbytes} bytes at {pointer:#x} are not within one allocation"
        raise DeviceError("hipErrorInvalidValue", message)


class _EmulatedFunction:
    """An exported function, emulated by running its launches."""

    def __init__(
        self, device: IsaDevice, kernel: EmulatedKernel, programs: Mapping[str, Program]
    ) -> None:
        self._device, self._kernel, self._programs = device, kernel, programs

    def workspace_bytes(self, args: Sequence[int | float]) -> int:
        return evaluate(self._kernel.workspace_bytes, self._sizes(args))

    def __call__(self, args: Sequence[int | float], workspace: int = 0) -> None:
        names = (arg.name for arg in self._kernel.args)
        values = dict(zip(names, args, strict=True)) | {WORKSPACE: workspace}
        sizes = self._sizes(args)
        for launch in self._kernel.launches:
            x, y, z = (evaluate(size, sizes) for size in launch.grid)
            if x * y * z == 0:
                continue  # the exported function skips it too
            dynamic_lds_bytes = launch.lds_bytes if launch.dynamic_lds else 0
            arguments = tuple(values[name] for name in launch.args)
            emulated = Emulated(
                launch.function, (x, y, z), launch.block, dynamic_lds_bytes, arguments
            )
            self._device.launch(self._programs[launch.function], emulated)

    def _sizes(self, args: Sequence[int | float]) -> dict[str, int]:
        return {
            arg.name: int(value)
            for arg, value in zip(self._kernel.args, args, strict=True)
            if arg.type != "ptr"
        }


def _read_bytes(data: Bytes, offset: int, size: int) -> bytes:
    return data[offset : offset + size].tobytes()


def _raise_for_result(program: Program, result: EmulationResult) -> None:
    """Raise ``DeviceError`` if a launch could not be emulated to its end."""
    name = program.function.name
    if result.unknown:
        mnemonics = ", ".join(sorted(result.unknown))
        raise DeviceError(
            "hipErrorInvalidKernelFile", f"{name}: the emulator does not know {mnemonics}"
        )
    if result.findings:
        finding = result.findings[0]
        line = program.function.instructions[finding.instruction].line
        address_note = "" if finding.address is None else f" at {finding.address:#x}"
        message = f"{name}: {finding.what}{address_note}, line {line} of the listing"
        code = "hipErrorLaunchFailure" if finding.address is None else "hipErrorIllegalAddress"
        raise DeviceError(code, message)
    if result.cut:
        raise DeviceError("hipErrorLaunchTimeOut", f"{name}: {result.cut}")


def device_info(processor: str) -> DeviceInfo:
    """Return the description of this machine as the GPU whose instructions are emulated."""
    [target] = (target for target in AMD_TARGETS if target.name == processor)
    return DeviceInfo(
        id=f"{PREFIX}{processor}",
        target=processor,
        name=f"{processor}, its instructions emulated",
        driver=f"{platform.system()} {platform.release()}",
        runtime="Kiln instruction emulation",
        compute_units=1,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        emulated=True,
        attributes={"emulates": processor, "wavefront": str(target.wavefront)},
    )


def open_isa_device(device_id: str) -> IsaDevice | None:
    """Open the device of that id; None if its instructions are not supported."""
    processor = device_id.removeprefix(PREFIX)
    return IsaDevice(processor) if processor in PROCESSORS else None


@cache
def _codec() -> Converter:
    return make_codec()
