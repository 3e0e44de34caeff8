"""Runs a whole bundle on a device: buffers, kernels in order, and ops without a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from scheduler.bundle.inputs import SUPPLIED_KINDS
from scheduler.bundle.loop_state import LoopState, loop_reads
from scheduler.bundle.manifest import ExternEntry, KernelEntry, LoopEntry
from scheduler.bundle.reader import Bundle
from scheduler.codegen.kernel import KernelCall
from scheduler.codegen.program import StepKind
from scheduler.errors import UserError
from scheduler.ir.bindings import Bindings, backed_bindings, bind_unbacked, check_bindings
from scheduler.ir.graph import Expr
from scheduler.ir.index.bounds import INT32_MAX
from scheduler.ir.index.functions import evaluate, unbacked_sizes
from scheduler.ir.operations import buffer_size_symbol, size_buffer_name
from scheduler.ir.storage import BoundBuffer, bind_buffer, from_storage, to_storage
from scheduler.runtime.device import Device, LoadedKernel

Array: TypeAlias = npt.NDArray[Any]
RunExtern: TypeAlias = Callable[[ExternEntry, Mapping[str, Array], Bindings], Mapping[str, Array]]
"""Runs an extern on the host: from its entry, the logical values of the buffers that it reads (by
name) and the sizes known so far, to the values of the buffers that it fills."""


NO_SIZE = "a data-dependent size that no node computes"


class NoReferenceError(UserError):
    """An extern without a reference; the message names the op and the reason."""


class BundleRun:
    """A bundle loaded on a device at one binding of its symbols. A context manager: on exit the
    device's memory is freed."""

    def __init__(
        self, bundle: Bundle, device: Device, bindings: Bindings, run_extern: RunExtern
    ) -> None:
        self._bundle = bundle
        self._device = device
        self._backed_bindings = backed_bindings(bindings)
        check_bindings(self._backed_bindings, bundle.manifest.symbols, bundle.manifest.guards)
        #: Bindings of the current run; data-dependent sizes are added during the run.
        self.bindings = dict(self._backed_bindings)
        self._run_extern = run_extern
        self.buffers: dict[str, BoundBuffer] = {}
        loops = bundle.manifest.loops
        self._borrowed = {name for loop in loops for name in loop.borrowed}
        self._memory: list[int] = []
        self._data_dependent_memory: list[int] = []  # data-dependent allocations of one run
        self._pools: dict[str, int] = {}
        self._pointers: dict[str, int] = {}
        self._allocate(self._memory)
        self._kernels: dict[str, LoadedKernel] = {}
        #: Buffers not filled in the last run, with the op that they need and that has no reference.
        self.missing: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reset()
        for pointer in self._memory:
            self._device.free(pointer)

    def run(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """Return the outputs by buffer name, from logical values of every input and parameter.

        An output that needs an op without a reference is omitted, and ``missing`` has the reason.
        Raises ``UserError`` if no output remains, if a value is missing or has another shape, or if
        an assertion of the model fails; ``DeviceError`` if the device fails.
        """
        self.missing = {}
        self._reset()
        manifest = self._bundle.manifest
        for name, buffer in manifest.buffers.items():
            if buffer.kind not in SUPPLIED_KINDS:
                continue
            if name not in values:
                raise UserError(f"no value for {buffer.kind} {buffer.source_name or name}")
            self._write(self.buffers[name], values[name])
        loops = LoopState(
            manifest.loops, self.buffers, self._pointers, self.bindings, self._read_flag
        )
        for kind, number in loops.order(manifest.program, self._is_loop_blocked):
            if kind is StepKind.EXTERN:
                self._execute_extern(manifest.externs[number])
                continue
            call = manifest.calls[number]
            if not self._is_call_blocked(call):
                self._launch(call.select_variant(self.bindings))
        self._device.synchronize()
        for name, assertions in groupby(manifest.assertions, attrgetter("buffer")):
            flags = None if name in self.missing else self.read(name)
            for assertion in assertions:
                if flags is not None and not flags[assertion.place]:
                    raise UserError(assertion.failure)
        outputs = {name: self.read(name) for name in manifest.outputs if name not in self.missing}
        if manifest.outputs and not outputs:
            name = manifest.outputs[0]
            source_name = manifest.buffers[name].source_name or name
            raise UserError(f"output {source_name} needs {self.missing[name]}")
        return outputs

    def read(self, name: str) -> Array:
        """Return the logical values of a buffer: float64 for floats, else its own type."""
        buffer = self.buffers[name]
        storage = np.empty(buffer.elements, dtype=buffer.dtype.numpy)
        if buffer.elements:
            self._device.read(self._pointers[name], storage)
        return from_storage(storage, buffer)

    def _allocate(self, memory: list[int]) -> None:
        """Bind and allocate the buffers and pools whose sizes have become known."""
        manifest = self._bundle.manifest
        for name, size in manifest.pools.items():
            if name not in self._pools and self._is_known(size):
                self._pools[name] = self._allocate_block(evaluate(size, self.bindings), memory)
        for name, buffer in manifest.buffers.items():
            if name in self.buffers or not self._is_known(*buffer.size, *buffer.stride):
                continue
            bound = self.buffers[name] = bind_buffer(buffer, self.bindings)
            if name in self._borrowed:
                continue
            self._pointers[name] = (
                self._pools[manifest.storage[name]]
                if name in manifest.storage
                else self._allocate_block(bound.nbytes, memory)
            )

    def _is_known(self, *exprs: Expr) -> bool:
        return all(size in self.bindings for expr in exprs for size in unbacked_sizes(expr))

    def _reset(self) -> None:
        """Discard the data-dependent sizes and memory of an earlier run."""
        for pointer in self._data_dependent_memory:
            self._device.free(pointer)
        self._data_dependent_memory.clear()
        self.bindings = dict(self._backed_bindings)
        manifest = self._bundle.manifest
        for name in [pool for pool, size in manifest.pools.items() if not self._is_known(size)]:
            self._pools.pop(name, None)
        for name, buffer in manifest.buffers.items():
            if not self._is_known(*buffer.size, *buffer.stride):
                self.buffers.pop(name, None)

    def _allocate_block(self, nbytes: int, memory: list[int]) -> int:
        pointer = self._device.allocate(nbytes)
        if pointer:
            memory.append(pointer)
        return pointer

    def _write(self, buffer: BoundBuffer, value: Array) -> None:
        if value.shape != buffer.size:
            shape = "x".join(str(size) for size in buffer.size) or "scalar"
            raise UserError(f"{buffer.name} must be {shape}, not {value.shape}")
        if buffer.elements:
            self._device.write(self._pointers[buffer.name], to_storage(value, buffer))

    def _execute_extern(self, extern: ExternEntry) -> None:
        self._device.synchronize()
        try:
            results = self._run_extern(extern, _LazyBuffers(self), self.bindings)
        except NoReferenceError as error:
            self.missing.update(dict.fromkeys(extern.outputs, str(error)))
            return
        symbols = {name: buffer_size_symbol(name) for name in results}
        sizes = {symbol: int(results[name]) for name, symbol in symbols.items() if symbol}
        if sizes:
            bind_unbacked(self.bindings, self._bundle.manifest.symbols, sizes)
            self._allocate(self._data_dependent_memory)
        for name, value in results.items():
            self._write(self.buffers[name], value)

    def _read_flag(self, name: str) -> bool:
        """Return the value of a buffer of one boolean, after all earlier work is complete."""
        self._device.synchronize()
        return bool(self.read(name).item())

    def _is_loop_blocked(self, loop: LoopEntry, after_a_step: bool) -> bool:
        """Whether a loop needs a missing value; if so, mark all of its results as missing."""
        reads = loop_reads(loop, after_a_step=after_a_step)
        missing = [name for name in reads if name in self.missing]
        missing += self._missing_sizes(() if loop.steps is None else (loop.steps,))
        if missing:
            why = self.missing.get(missing[0], NO_SIZE)
            self.missing.update(dict.fromkeys(loop.results, why))
        return bool(missing)

    def _missing_sizes(self, exprs: Iterable[Expr]) -> list[str]:
        """Return the buffers of the data-dependent sizes that are not known."""
        sizes = [size for expr in exprs for size in unbacked_sizes(expr)]
        return [size_buffer_name(size) for size in sizes if size not in self.bindings]

    def _is_call_blocked(self, call: KernelCall) -> bool:
        """Whether a call needs a missing size or buffer; if so, mark its outputs as missing."""
        all_args = (call.args, *(variant.args for variant in call.variants))
        exprs = [
            value for args in all_args for value in args.values() if not isinstance(value, str)
        ]
        missing = self._missing_sizes(exprs)
        if not missing:
            call = call.select_variant(self.bindings)
        args = self._bundle.manifest.kernels[call.kernel].args
        buffers = [(str(call.args[arg.name]), arg.is_output) for arg in args if arg.type == "ptr"]
        if not missing:
            missing = [
                name for name, is_output in buffers if name in self.missing and not is_output
            ]
        if missing:
            why = self.missing.get(missing[0], NO_SIZE)
            self.missing.update((name, why) for name, is_output in buffers if is_output)
        return bool(missing)

    def _launch(self, call: KernelCall) -> None:
        entry = self._bundle.manifest.kernels[call.kernel]
        kernel = self._kernels.get(call.kernel)
        if kernel is None:
            library = self._bundle.library(call.kernel, self._device.info.target)
            types = [arg.type for arg in entry.args]
            kernel = self._kernels[call.kernel] = self._device.load(library, entry.symbol, types)
        args = arguments(call, entry, self._pointers, self.bindings)
        workspace = self._device.allocate(kernel.workspace_bytes(args))
        kernel(args, workspace)
        if workspace:
            self._device.synchronize()
            self._device.free(workspace)


def arguments(
    call: KernelCall, entry: KernelEntry, pointers: Mapping[str, int], bindings: Bindings
) -> list[int]:
    """Return a kernel's arguments. Raises ``UserError`` for a size that does not fit."""
    numbers = []
    for arg in entry.args:
        value = call.args[arg.name]
        number = pointers[value] if isinstance(value, str) else evaluate(value, bindings)
        if arg.type == "i32" and number > INT32_MAX:
            raise UserError(
                f"{call.kernel}: {arg.name} is {number}, which does not fit in the 32 bits "
                "of this kernel"
            )
        numbers.append(number)
    return numbers


class _LazyBuffers(Mapping[str, Array]):
    """Buffers of a run, read from the device on access."""

    def __init__(self, run: BundleRun) -> None:
        self._run = run

    def __getitem__(self, name: str) -> Array:
        if name in self._run.missing:
            raise NoReferenceError(self._run.missing[name])
        return self._run.read(name)

    def __iter__(self) -> Any:
        raise TypeError("buffers are read by name")

    def __len__(self) -> int:
        raise TypeError("buffers are read by name")
