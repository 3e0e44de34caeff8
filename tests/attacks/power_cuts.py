"""The power fails: ``python -m tests.attacks.power_cuts --count 3``.

A site's files lie on an ext4 file system of their own, of which nothing but what ``fsync`` asked
for reaches the disk; a database that root starts lies elsewhere, and stays whole. At each cut all
processes are stopped, the disk is copied as it is, everything is killed, and the site goes on from
the copy. Models are imported, built and tuned and results sent meanwhile. Then all work completes,
and nothing that was accepted is lost, doubled or damaged. Needs root, to mount. Ends with 1 where
anything was, with 2 where it cannot mount.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.app.processes import alive
from tests.attacks.kills import Attack, main
from tests.attacks.site_under_attack import Site, kill

_COPIES = 5
# The kernel writes dirty pages back after some seconds: here not before the attack is over.
_WRITEBACK = Path("/proc/sys/vm/dirty_writeback_centisecs")


class Disk:
    """A file system in a file. ``place`` is where it is mounted; ``keep`` it where something was
    found."""

    def __init__(self, folder: Path) -> None:
        self.keep = False
        self.place = folder / "disk"
        self._image = folder / "image"
        self.place.mkdir()
        with self._image.open("wb") as file:
            file.truncate(3 * 2**30)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(self._image)], check=True)

    def mount(self) -> None:
        """With a journal that is written where ``fsync`` asks for it, not every 5 seconds."""
        options = "loop,commit=3600,data=ordered"
        subprocess.run(["mount", "-o", options, str(self._image), str(self.place)], check=True)

    def unmount(self) -> None:
        subprocess.run(["umount", str(self.place)], check=True)

    def copy(self) -> Path:
        """The disk at one moment: copied again where something was written meanwhile."""
        copy = self._image.with_name("copy")
        for _ in range(_COPIES):
            before = self._written()
            subprocess.run(["cp", "--sparse=always", str(self._image), str(copy)], check=True)
            if self._written() == before:
                return copy
        raise RuntimeError("the disk is written to by something else")

    def go_on_from(self, copy: Path) -> None:
        """What was written since the copy never was."""
        self.unmount()
        copy.replace(self._image)
        self.mount()

    def _written(self) -> str:
        """How many writes and sectors have reached it."""
        device = self.place.stat().st_dev
        fields = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read_text()
        return " ".join(fields.split()[4:7])


class PowerCuts(Attack):
    """Each fault is a cut."""

    def __init__(self, disk: Disk, seed: int) -> None:
        super().__init__(Site(disk.place / "var"), seed)
        self._disk = disk

    def disturb(self) -> bool:
        """Once in a while cut the power. Whether the site goes on by itself."""
        if self.random.random() > 0.03:
            return True
        stopped = self._stop_all()
        copy = self._disk.copy()
        for pid in stopped:
            kill(pid)
        self.site.wait_for_supervisor()
        while any(alive(pid) for pid in stopped):
            time.sleep(0.05)
        self._disk.go_on_from(copy)
        self.faults["power cut"] += 1
        for folder in self.site.var.glob("code-cache/zig/*-*"):  # named after a boot that is over
            folder.rename(folder.with_name(f"boot {self.faults['power cut']}"))
        self.site.start()
        return False

    def _stop_all(self) -> set[int]:
        """All processes, those too that others start before they are stopped."""
        stopped: set[int] = set()
        while new := set(self.site.all_processes()) - stopped:
            for pid in new:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            stopped |= new
        return stopped


@contextmanager
def disk_without_writeback() -> Iterator[Disk]:
    """Mounted, and gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="kiln-power-"))
    folder.chmod(0o755)
    before = _WRITEBACK.read_text()
    try:
        disk = Disk(folder)
        disk.mount()
        _WRITEBACK.write_text("0")
    except (OSError, subprocess.CalledProcessError) as error:
        shutil.rmtree(folder)
        sys.stdout.write(f"no file system can be mounted here ({error}): run this as root\n")
        sys.exit(2)
    try:
        (disk.place / "var").mkdir()
        yield disk
    finally:
        _WRITEBACK.write_text(before)
        if not disk.keep:
            subprocess.run(["umount", "--lazy", str(disk.place)], check=False)
            shutil.rmtree(folder)


if __name__ == "__main__":
    with disk_without_writeback() as disk:
        disk.keep = bool(main(__doc__, 3, lambda seed: PowerCuts(disk, seed)))
    sys.exit(disk.keep)
