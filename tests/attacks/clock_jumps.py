"""The clock jumps: ``python -m tests.attacks.clock_jumps --count 40``.

A whole demo runs by a clock (``clock.c``) that jumps by seconds to weeks, forth and back, under
everything that runs, the database too, while models are imported, built and tuned and results are
sent. The last jump is back to the right time. Then all work completes, and nothing that was
accepted is lost, doubled, stuck or left behind.

Ends with 1 where anything was.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from scheduler.build.toolchains import bundled_clang
from tests.attacks import invariants
from tests.attacks.kills import Attack, main
from tests.attacks.site_under_attack import Site

_SECONDS = (1, 61, 900, 3_700, 90_000, 8 * 86_400, 40 * 86_400)


class ClockJumps(Attack):
    """Each fault is a jump. ``folder`` has the library and the file with the offset."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._clock = folder / "offset"
        self._clock.write_bytes(bytes(8))
        library = folder / "clock.so"
        source = Path(__file__).with_name("clock.c")
        command = [*bundled_clang().host, "-O1", "-shared", "-fPIC", "-o", library, source]
        subprocess.run(command, check=True)
        super().__init__(
            Site(environment={"LD_PRELOAD": str(library), "ATTACK_CLOCK": str(self._clock)}), seed
        )

    def disturb(self) -> bool:
        offset = self.random.choice(_SECONDS) * self.random.choice((-1, 1))
        self._set(offset if self.random.random() < 0.8 else 0)
        self.faults["jump"] += 1
        return True

    def run(self, count: int) -> None:
        super().run(count)
        self._set(0)

    def _set(self, offset: int) -> None:
        with self._clock.open("r+b") as file:
            file.write(offset.to_bytes(8, sys.byteorder, signed=True))


if __name__ == "__main__":
    invariants.isolate_shared_memory()
    with tempfile.TemporaryDirectory(prefix="kiln-clock-") as folder:
        Path(folder).chmod(0o755)
        sys.exit(main(__doc__, 40, lambda seed: ClockJumps(Path(folder), seed)))
