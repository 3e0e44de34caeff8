"""The memories that vector instructions access, all with the same four operations."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from scheduler.isa.rocm.emulator.memory import Addresses, Words
from scheduler.isa.rocm.emulator.state import OUTSIDE, Group
from scheduler.isa.rocm.emulator.transfers import Transfer, extend_values

Lanes = npt.NDArray[np.int64]


class Space(ABC):
    """``addresses`` are [waves, lanes] bytes; [n] are those of active lanes, in order."""

    def load(self, g: Group, index: int, addresses: Addresses, transfer: Transfer) -> Words:
        """Load [words, n] for the active lanes; ``index`` is the instruction."""
        return self.fetch(g, index, self.flat(g, addresses), transfer)

    def store(
        self, g: Group, index: int, addresses: Addresses, transfer: Transfer, values: Words
    ) -> None:
        self.put(g, index, self.flat(g, addresses), transfer, values)

    @abstractmethod
    def flat(self, g: Group, addresses: Addresses) -> Addresses:
        """Return the [n] addresses of active lanes, in the numbering of the underlying memory."""

    @abstractmethod
    def fetch(self, g: Group, index: int, flat: Addresses, transfer: Transfer) -> Words: ...

    @abstractmethod
    def put(
        self, g: Group, index: int, flat: Addresses, transfer: Transfer, values: Words
    ) -> None: ...


class Global(Space):
    """Global memory."""

    def flat(self, g: Group, addresses: Addresses) -> Addresses:
        return addresses.reshape(-1) if g.full else addresses[g.mask]

    def fetch(self, g: Group, index: int, flat: Addresses, transfer: Transfer) -> Words:
        memory = g.machine.memory
        if transfer.size < 4:
            small, bad = memory.load_small(flat, transfer.size)
            words = extend_values(small, transfer)[None]
        else:
            words, bad = memory.load(flat, transfer.words)
        if len(bad):
            g.machine.note_outside(f"read {OUTSIDE}", index, bad)
        return words

    def put(self, g: Group, index: int, flat: Addresses, transfer: Transfer, values: Words) -> None:
        memory = g.machine.memory
        if transfer.size < 4:
            octets = [
                (values[0] >> np.uint32(8 * n)).astype(np.uint8) for n in range(transfer.size)
            ]
            bad = memory.store_bytes(flat, np.stack(octets))
        else:
            bad = memory.store(flat, values)
        if len(bad):
            g.machine.note_outside(f"write {OUTSIDE}", index, bad)


class LocalSpace(Space):
    """A range of words per block or lane: LDS, scratch. Addresses are relative to its start; beyond
    its end, reads return zeros and writes are dropped."""

    name: str

    @abstractmethod
    def size(self, g: Group) -> int:
        """Return the bytes of each block's or lane's part."""

    @abstractmethod
    def words(self, g: Group) -> Words:
        """Return the whole memory."""

    def fetch(self, g: Group, index: int, flat: Addresses, transfer: Transfer) -> Words:
        store = self.words(g)
        inside = self._inside(g, index, flat, transfer, "read")
        if inside is not None:
            result = np.zeros((transfer.words, len(flat)), np.uint32)
            result[:, inside] = self.fetch(g, index, flat[inside], transfer)
            return result
        count = transfer.words
        if transfer.size < 4:
            octets = store.view(np.uint8)
            values = octets[flat].astype(np.uint32)
            if transfer.size == 2:
                values |= octets[flat + 1].astype(np.uint32) << np.uint32(8)
            return extend_values(values, transfer)[None]
        if (flat & 3).any():
            rows = store.view(np.uint8)[flat[:, None] + np.arange(transfer.size)]
            return np.ascontiguousarray(rows).view(np.uint32).T
        at = flat >> 2
        words: Words
        if count == 1:
            words = store[at][None]
        elif count != 3 and not (at & (count - 1)).any():
            words = store.reshape(-1, count)[at // count].T
        else:
            words = np.stack([store[at + word] for word in range(count)])
        return words

    def put(self, g: Group, index: int, flat: Addresses, transfer: Transfer, values: Words) -> None:
        store = self.words(g)
        inside = self._inside(g, index, flat, transfer, "write")
        if inside is not None:
            self.put(g, index, flat[inside], transfer, values[:, inside])
            return
        if transfer.size < 4:
            octets = store.view(np.uint8)
            for byte in range(transfer.size):
                octets[flat + byte] = (values[0] >> np.uint32(8 * byte)).astype(np.uint8)
        elif (flat & 3).any():
            raw = np.ascontiguousarray(values.T).view(np.uint8)
            store.view(np.uint8)[flat[:, None] + np.arange(transfer.size)] = raw
        else:
            at = flat >> 2
            for word in range(transfer.words):
                store[at + word] = values[word]

    def _inside(
        self, g: Group, index: int, flat: Addresses, transfer: Transfer, verb: str
    ) -> npt.NDArray[np.int64] | None:
        """Return which lanes are in range; None: all."""
        size = self.size(g)
        if not len(flat):
            return None
        good = flat >= 0
        if size:
            good &= flat % size + transfer.size <= size
        if good.all():
            return None
        g.machine.note_outside(f"{verb} outside {self.name}", index, flat[~good])
        return np.nonzero(good)[0]


class Lds(LocalSpace):
    """The LDS of a block."""

    name = "the block's LDS"

    def size(self, g: Group) -> int:
        return g.machine.lds_words * 4

    def words(self, g: Group) -> Words:
        return g.machine.lds

    def flat(self, g: Group, addresses: Addresses) -> Addresses:
        """Return -1 for addresses outside the block's LDS."""
        size = self.size(g)
        if not g.full:
            absolute = (addresses + g.lds_base)[g.mask]
            addresses = addresses[g.mask]
        else:
            absolute = (addresses + g.lds_base).reshape(-1)
        if len(absolute) and (addresses.max() >= size or addresses.min() < 0):
            relative = addresses.reshape(-1)
            absolute = np.where((relative < 0) | (relative >= size), -1, absolute)
        return absolute


class Scratch(LocalSpace):
    """A lane's scratch memory: words [waves, lanes, words] of the group."""

    name = "the lane's scratch"

    def size(self, g: Group) -> int:
        return g.machine.scratch_words * 4

    def words(self, g: Group) -> Words:
        assert g.scratch is not None
        return g.scratch.reshape(-1)

    def flat(self, g: Group, addresses: Addresses) -> Addresses:
        size = self.size(g)
        lane = np.arange(g.count * g.lanes, dtype=np.int64).reshape(g.count, g.lanes) * size
        outside = (addresses < 0) | (addresses >= size)
        absolute = np.where(outside, -1, addresses + lane)
        return absolute.reshape(-1) if g.full else absolute[g.mask]


GLOBAL, LDS, SCRATCH = Global(), Lds(), Scratch()
