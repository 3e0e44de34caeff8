"""Memory that kernels access by address: mapped regions whose pages are allocated on access."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

PAGE = 4096
_WORDS = PAGE // 4
ALIGNMENT = 256

Filler = Callable[[int, int], bytes]
Addresses = npt.NDArray[Any]
Words = npt.NDArray[Any]


class MemoryLimitError(Exception):
    """More pages were accessed than allowed."""


@dataclass(eq=False)
class Region:
    """``size`` bytes from ``address``. ``fill(offset, count)`` returns the initial contents of
    whole pages (cut at the region's end); without it they are zeros. ``table`` maps the region's
    pages to those of the pool, 0 if not allocated yet."""

    name: str
    address: int
    size: int
    fill: Filler | None
    table: npt.NDArray[np.int32] = field(repr=False)

    @property
    def end(self) -> int:
        return self.address + self.size


class Memory:
    """Regions [address, address + size) of bytes, little-endian. ``pages`` limits the
    allocation."""

    def __init__(self, pages: int = 1 << 17) -> None:
        self._limit = pages
        self._starts: list[int] = []
        self._regions: list[Region] = []
        self._pool: Words = np.zeros(64 * _WORDS, np.uint32)
        self._bytes = self._pool.view(np.uint8)
        self._used = 1  # page 0 means "none"
        self._free: list[int] = []  # pages of unmapped regions

    @property
    def regions(self) -> tuple[Region, ...]:
        return tuple(self._regions)

    def map(
        self,
        name: str,
        address: int,
        size: int,
        data: bytes | None = None,
        fill: Filler | None = None,
    ) -> Region:
        """Map a new region. ``data`` are its first bytes; ``fill`` fills pages on access.

        Raises:
            ValueError: it is not aligned to 256 bytes, overlaps another, or is empty.
        """
        if address % ALIGNMENT or address <= 0 or size <= 0 or address + size >= 1 << 47:
            raise ValueError(f"{name}: {size} bytes at {address:#x} is no region of memory")
        position = bisect_right(self._starts, address)
        before = self._regions[position - 1] if position else None
        after = self._regions[position] if position < len(self._regions) else None
        if (before and before.end > address) or (after and address + size > after.address):
            raise ValueError(f"{name}: {size} bytes at {address:#x} overlap another region")
        region = Region(name, address, size, fill, np.zeros(-(-size // PAGE), np.int32))
        self._starts.insert(position, address)
        self._regions.insert(position, region)
        if data:
            self.write(address, data)
        return region

    def unmap(self, region: Region) -> None:
        """Unmap a region: its addresses become invalid, its pages may be reused."""
        self._free += region.table[region.table > 0].tolist()
        position = self._regions.index(region)
        del self._regions[position], self._starts[position]

    def free_address(self) -> int:
        """Return an address after all regions at which a region may be mapped."""
        end = self._regions[-1].end if self._regions else 0
        return max(0x10_0000, -(-(end + PAGE) // PAGE) * PAGE)

    def region_at(self, address: int) -> Region | None:
        position = bisect_right(self._starts, address) - 1
        if position < 0 or address >= self._regions[position].end:
            return None
        return self._regions[position]

    # -- by the host ----------------------------------------------------------------------------

    def read(self, address: int, size: int) -> bytes:
        """Return the current bytes; zeros outside all regions."""
        out = np.empty(size, np.uint8)
        addresses = np.arange(address, address + size, dtype=np.int64)
        self.load_bytes(addresses, 1, out.reshape(1, size))
        return out.tobytes()

    def write(self, address: int, data: bytes) -> None:
        """Replace bytes; bytes outside all regions are dropped."""
        values = np.frombuffer(data, np.uint8).reshape(1, -1)
        self.store_bytes(np.arange(address, address + len(data), dtype=np.int64), values)

    def copy_out(self, region: Region, out: npt.NDArray[np.uint8]) -> None:
        """Copy a region's current bytes into ``out``: only pages accessed since it was mapped."""
        for page in np.nonzero(region.table)[0].tolist():
            part = out[page * PAGE : (page + 1) * PAGE]
            start = int(region.table[page]) * PAGE
            part[:] = self._bytes[start : start + len(part)]

    # -- by lanes -------------------------------------------------------------------------------

    def load(self, addresses: Addresses, count: int) -> tuple[Words, Addresses]:
        """Return [count, n] words at [n] addresses, and the addresses outside all regions (they
        read as zeros)."""
        aligned = not (addresses & 3).any()
        region = self._one_region(addresses, 4 * count) if aligned else None
        if region is not None:
            offsets = addresses - region.address
            out = np.empty((count, len(addresses)), np.uint32)
            if count > 1 and not (offsets & (4 * count - 1)).any() and not count & (count - 1):
                base = self._positions(region, offsets)
                for word in range(count):
                    np.take(self._pool, base + word, out=out[word])
            else:
                for word in range(count):
                    at = self._positions(region, offsets + 4 * word)  # may replace the pool
                    np.take(self._pool, at, out=out[word])
            return out, _NONE
        raw = np.empty((4 * count, len(addresses)), np.uint8)
        bad = self.load_bytes(addresses, 4 * count, raw)
        return np.ascontiguousarray(raw.T).view(np.uint32).T, bad

    def load_small(self, addresses: Addresses, size: int) -> tuple[Words, Addresses]:
        """Return [n] values of 1 or 2 bytes as words, and the addresses outside."""
        if size == 1 or not (addresses & 1).any():
            words, bad = self.load(addresses & ~3, 1)
            if not len(bad):  # a region's last word may be cut: then byte by byte
                shift = ((addresses & 3) << 3).astype(np.uint32)
                return (words[0] >> shift) & np.uint32(0xFF if size == 1 else 0xFFFF), bad
        raw = np.empty((size, len(addresses)), np.uint8)
        bad = self.load_bytes(addresses, size, raw)
        values = raw[0].astype(np.uint32)
        for byte in range(1, size):
            values |= raw[byte].astype(np.uint32) << np.uint32(8 * byte)
        return values, bad

    def store(self, addresses: Addresses, values: Words) -> Addresses:
        """Write [count, n] words at [n] addresses, the last of equal ones; return those outside."""
        count = len(values)
        region = self._one_region(addresses, 4 * count) if not (addresses & 3).any() else None
        if region is not None:
            offsets = addresses - region.address
            for word in range(count):
                positions = self._positions(region, offsets + 4 * word)  # may replace the pool
                self._pool[positions] = values[word]
            return _NONE
        raw = np.ascontiguousarray(values.T).view(np.uint8).reshape(len(addresses), -1)
        return self.store_bytes(addresses, raw.T)

    def load_bytes(self, addresses: Addresses, size: int, out: npt.NDArray[np.uint8]) -> Addresses:
        """Load into [size, n], with any alignment; return the addresses outside."""
        out[:] = 0
        outside = np.zeros(len(addresses), bool)
        for byte, lanes, at in self._bytes_inside(addresses, size, outside):
            out[byte, lanes] = self._bytes[at]
        return addresses[outside]

    def store_bytes(self, addresses: Addresses, values: npt.NDArray[np.uint8]) -> Addresses:
        """Write [size, n] bytes at [n] addresses; return those outside all regions."""
        outside = np.zeros(len(addresses), bool)
        for byte, lanes, at in self._bytes_inside(addresses, len(values), outside):
            self._bytes[at] = values[byte, lanes]
        return addresses[outside]

    def _bytes_inside(
        self, addresses: Addresses, size: int, outside: npt.NDArray[np.bool_]
    ) -> Iterator[tuple[int, Addresses, Addresses]]:
        """Yield (byte, lanes, positions in the pool) of all bytes inside a region, and set
        ``outside`` [n] for addresses that have others."""
        starts = np.asarray(self._starts, np.int64)
        for byte in range(size):
            byte_addresses = addresses + byte
            numbers = np.searchsorted(starts, byte_addresses, side="right") - 1
            inside = np.zeros(len(addresses), bool)
            for number in np.unique(numbers):
                if number < 0:
                    continue
                region = self._regions[number]
                lanes = np.nonzero((numbers == number) & (byte_addresses < region.end))[0]
                if len(lanes):
                    inside[lanes] = True
                    offsets = byte_addresses[lanes] - region.address
                    slots = self._slots(region, offsets)
                    yield byte, lanes, slots * PAGE + (offsets & (PAGE - 1))
            outside |= ~inside

    def _one_region(self, addresses: Addresses, size: int) -> Region | None:
        """Return the region that contains all of them, or None."""
        if not len(addresses):
            return None
        low = int(addresses.min())
        region = self.region_at(low)
        if region is None or int(addresses.max()) + size > region.end:
            return None
        return region

    def _slots(self, region: Region, offsets: Addresses) -> Addresses:
        """Return pages of the pool, allocating missing ones."""
        pages = offsets >> 12
        slots = region.table[pages]
        if not slots.all():
            self._make_pages(region, np.unique(pages[slots == 0]))
            slots = region.table[pages]
        slot_numbers: Addresses = slots.astype(np.int64)
        return slot_numbers

    def _positions(self, region: Region, offsets: Addresses) -> Addresses:
        """Return word positions in the pool."""
        slots = self._slots(region, offsets)
        return (slots << 10) + ((offsets & (PAGE - 1)) >> 2)

    def _make_pages(self, region: Region, pages: Addresses) -> None:
        if region.fill is None and self._free:  # zeroed pages of unmapped regions
            count = min(len(pages), len(self._free))
            slots, self._free = self._free[:count], self._free[count:]
            for slot in slots:
                self._bytes[slot * PAGE : (slot + 1) * PAGE] = 0
            region.table[pages[:count]] = slots
            pages = pages[count:]
        needed = self._used + len(pages)
        if needed > self._limit:
            raise MemoryLimitError
        if needed * _WORDS > len(self._pool):
            grown = np.zeros(min(max(needed, 2 * self._used), self._limit) * _WORDS, np.uint32)
            grown[: len(self._pool)] = self._pool
            self._pool, self._bytes = grown, grown.view(np.uint8)
        region.table[pages] = np.arange(self._used, needed, dtype=np.int32)
        self._used = needed
        if region.fill is None:
            return
        breaks = np.nonzero(np.diff(pages) != 1)[0] + 1
        for stretch in np.split(pages, breaks):
            first = int(stretch[0]) * PAGE
            size = min(len(stretch) * PAGE, region.size - first)
            data = np.frombuffer(region.fill(first, size), np.uint8)[:size]
            start = int(region.table[stretch[0]]) * PAGE
            self._bytes[start : start + len(data)] = data


_NONE: Addresses = np.zeros(0, np.int64)
