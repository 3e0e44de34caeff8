"""Pages in memory: the most recently read, up to a number of bytes; each rendered by one thread."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock

from codegen_app.web.pagecache.compressed import Part
from codegen_app.web.pagecache.version import Version

_WAIT_S = 60.0


@dataclass
class Entry:
    """A rendered page in parts, with the reader's values between them.

    ``version`` and ``trace`` say what it was rendered from, ``rendered_at`` (monotonic seconds)
    when, and ``cost_s`` how long it took; ``is_timed``: it shows the time.
    """

    parts: tuple[Part, ...]
    marks: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]
    digest: str
    version: Version
    trace: str
    is_timed: bool
    rendered_at: float
    cost_s: float
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = sum(len(part.deflated) for part in self.parts) + 2048


class Store:
    """Entries by key; the least recently read are evicted first."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._entries: OrderedDict[Hashable, Entry] = OrderedDict()
        self._rendering: dict[Hashable, Event] = {}
        self._lock = Lock()

    def get(self, key: Hashable) -> Entry | None:
        """Return the entry of that key, if it exists."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
            return entry

    def put(self, key: Hashable, entry: Entry) -> None:
        """Store an entry, unless it alone takes a quarter of the capacity."""
        with self._lock:
            self._drop(key)
            if entry.size * 4 > self._most_bytes:
                return
            self._entries[key] = entry
            self._bytes += entry.size
            while self._bytes > self._most_bytes:
                self._drop(next(iter(self._entries)))

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    @property
    def bytes(self) -> int:
        """The size of the entries."""
        return self._bytes

    @contextmanager
    def rendering(self, key: Hashable) -> Iterator[bool]:
        """Yield whether this thread is to render the page; False if another does."""
        with self._lock:
            is_first = key not in self._rendering
            finished = self._rendering.setdefault(key, Event())
        try:
            yield is_first
        finally:
            if is_first:
                with self._lock:
                    del self._rendering[key]
                finished.set()

    def wait(self, key: Hashable) -> None:
        """Wait until no thread renders that page."""
        finished = self._rendering.get(key)
        if finished is not None:
            finished.wait(_WAIT_S)

    def is_rendering(self, key: Hashable) -> bool:
        """Return whether a thread renders that page."""
        return key in self._rendering

    def _drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.size
