"""The power fails: ``python -m tests.attacks.power_cuts --count 3``.

A site's files and its database lie on an ext4 file system of their own, of which nothing but what
``fsync`` asked for reaches the disk. At each cut all processes are stopped, the disk is copied as
it is, everything is killed, and the site goes on from the copy. Models are imported, built and
tuned and results sent meanwhile. Then all work completes, and nothing that was accepted is lost,
doubled or damaged. Needs root, to mount. Ends with 1 where anything was, with 2 where it cannot
mount.
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

from codegen_app.platform import postgres
from tests.app.processes import alive
from tests.attacks import invariants
from tests.attacks.kills import Attack, main
from tests.attacks.site_under_attack import Site, kill

_COPIES = 5
# The kernel writes dirty pages back after some seconds: here not before the attack is over.
_WRITEBACK = Path("/proc/sys/vm/dirty_writeback_centisecs")


class Disk:
    """A file system in a file, mounted at ``place``. It holds the site's folder ``var`` and its
    database, which root's sites have under /var/lib. ``keep``: do not delete it."""

    def __init__(self, folder: Path) -> None:
        self.keep = False
        self.place = folder / "disk"
        self.var = self.place / "var"
        self._database = postgres.cluster_for(self.var).home
        self.image = folder / "image"
        self.place.mkdir()
        with self.image.open("wb") as file:
            file.truncate(3 * 2**30)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(self.image)], check=True)

    def mount(self) -> None:
        """With a journal that is written where ``fsync`` asks for it, not every 5 seconds."""
        options = "loop,commit=3600,data=ordered"
        subprocess.run(["mount", "-o", options, str(self.image), str(self.place)], check=True)
        inside = self.place / "database"
        for folder in (self.var, inside, self._database):
            folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "--bind", str(inside), str(self._database)], check=True)

    def unmount(self, *options: str) -> None:
        for place in (self._database, self.place):
            subprocess.run(["umount", *options, str(place)], check=True)

    def copy(self) -> Path:
        """The disk at one moment: copied again where something was written meanwhile."""
        copy = self.image.with_name("copy")
        for _ in range(_COPIES):
            before = self._written()
            subprocess.run(["cp", "--sparse=always", str(self.image), str(copy)], check=True)
            if self._written() == before:
                return copy
        raise RuntimeError("the disk is written to by something else")

    def go_on_from(self, copy: Path) -> None:
        """What was written since the copy never was."""
        self.unmount()
        copy.replace(self.image)
        self.mount()

    def _written(self) -> str:
        """How many writes and sectors have reached it."""
        device = self.place.stat().st_dev
        fields = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read_text()
        return " ".join(fields.split()[4:7])


class _Site(Site):
    """Its folder and its database are mounted, and are removed with the disk."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(disk.var)

    def remove(self) -> None:
        self.kill_all()


class PowerCuts(Attack):
    """Each fault is a cut."""

    def __init__(self, disk: Disk, seed: int) -> None:
        super().__init__(_Site(disk), seed)
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
        yield disk
    finally:
        _WRITEBACK.write_text(before)
        if disk.keep:  # the mount ends with this process
            sys.stdout.write(f"its disk: {disk.image}\n")
        else:
            disk.unmount("--lazy")
            postgres.remove(disk.var)
            shutil.rmtree(folder)


if __name__ == "__main__":
    invariants.isolate_shared_memory()
    with disk_without_writeback() as disk:
        disk.keep = bool(main(__doc__, 3, lambda seed: PowerCuts(disk, seed)))
    sys.exit(disk.keep)
