"""A case's buffers on a device, each between two guard bands."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from scheduler.arithmetic import round_up
from scheduler.benchmark.case import Case
from scheduler.ir.storage import Array, BoundBuffer
from scheduler.runtime.device import Device

GUARD_BYTES = 4096
_GUARD_BYTE = 0x5A
_CHUNK_BYTES = 2**24  # bytes compared at a time
# All bits set is a NaN in every float type, so that elements not written are detected.
_POISON_BYTE = 0xFF


class GuardedBlock:
    """Device memory of ``nbytes`` with a guard band before and after."""

    def __init__(self, device: Device, nbytes: int) -> None:
        self._device = device
        self.nbytes = nbytes
        padded = round_up(nbytes, 256)
        self._total = padded + 2 * GUARD_BYTES
        self._base = device.allocate(self._total)
        self.reset()

    @property
    def pointer(self) -> int:
        """Device address of the buffer; null if it is empty."""
        return self._base + GUARD_BYTES if self.nbytes else 0

    def reset(self) -> None:
        """Fill the guard bands and the buffer with the guard pattern."""
        self._device.fill(self._base, _GUARD_BYTE, self._total)

    def poison(self) -> None:
        """Fill the buffer, not its guards, with NaN."""
        if self.nbytes:
            self._device.fill(self.pointer, _POISON_BYTE, self.nbytes)

    def write(self, data: Array) -> None:
        """Copy storage of the buffer's length to the device."""
        if self.nbytes:
            self._device.write(self.pointer, data)

    def read(self, dtype: str) -> Array:
        """The buffer's storage, 1-D."""
        out = np.empty(self.nbytes // np.dtype(dtype).itemsize, dtype=dtype)
        if self.nbytes:
            self._device.read(self.pointer, out)
        return out

    def is_intact(self) -> bool:
        """Whether nothing outside the buffer was written."""
        end = GUARD_BYTES + self.nbytes
        for offset, nbytes in ((0, GUARD_BYTES), (end, self._total - end)):
            guard: npt.NDArray[np.uint8] = np.empty(nbytes, dtype=np.uint8)
            self._device.read(self._base + offset, guard)
            if not (guard == _GUARD_BYTE).all():
                return False
        return True

    def free(self) -> None:
        self._device.free(self._base)


class CaseMemory:
    """All buffers of a case; several ``copies`` let timing rotate through more than the cache."""

    def __init__(self, device: Device, case: Case, copies: int = 1) -> None:
        self._case = case
        self._copies = [
            {name: GuardedBlock(device, buffer.nbytes) for name, buffer in case.buffers.items()}
            for _ in range(copies)
        ]
        self.restore()

    def restore(self) -> None:
        """Rewrite guards and inputs, so that no kernel is blamed for what another overwrote."""
        for copy in self._copies:
            for block in copy.values():
                block.reset()
            for name, data in self._case.inputs.items():
                copy[name].write(data)

    @property
    def copies(self) -> int:
        """The number of sets of buffers."""
        return len(self._copies)

    def pointer(self, name: str, copy: int = 0) -> int:
        """Device address of a buffer."""
        return self._copies[copy][name].pointer

    def poison_outputs(self, outputs: Iterable[str]) -> None:
        """Poison the outputs; restore those that are also inputs."""
        for name in outputs:
            self._copies[0][name].poison()
            if name in self._case.inputs:
                self._copies[0][name].write(self._case.inputs[name])

    def read(self, buffer: BoundBuffer) -> Array:
        """Storage of a buffer of the first copy."""
        return self._copies[0][buffer.name].read(buffer.dtype.numpy)

    def damaged_buffers(self, written: Iterable[str]) -> tuple[str, ...]:
        """Return the buffers whose guards were overwritten, and inputs whose contents were."""
        written_names = set(written)
        damaged_names = [name for name, block in self._copies[0].items() if not block.is_intact()]
        for name, data in self._case.inputs.items():
            if name in written_names or name in damaged_names:
                continue
            # Bit for bit, in pieces: a NaN equals itself, and no copy is made.
            content = self._copies[0][name].read(str(data.dtype)).view(np.uint8)
            expected = data.view(np.uint8)
            if content.size != expected.size or not all(
                np.array_equal(
                    content[start : start + _CHUNK_BYTES], expected[start : start + _CHUNK_BYTES]
                )
                for start in range(0, content.size, _CHUNK_BYTES)
            ):
                damaged_names.append(name)
        return tuple(damaged_names)

    def free(self) -> None:
        for copy in self._copies:
            for block in copy.values():
                block.free()
