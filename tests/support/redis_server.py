"""A Redis of a test's own, which can be killed and come back with nothing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import redis

from tests.support.ports import free_port


def lacking() -> str:
    """Why there is none here; "" where there is."""
    found = shutil.which("redis-server")
    return "" if found else "there is no redis-server: apt-get install redis-server"


class RedisServer:
    """It keeps nothing on disk."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._port = free_port()
        self.url = f"redis://127.0.0.1:{self._port}/0"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Returns once it takes connections."""
        self._process = subprocess.Popen(
            [
                *("redis-server", "--port", str(self._port), "--bind", "127.0.0.1"),
                *("--save", "", "--dir", str(self._folder)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        said = []
        for line in self._process.stdout:
            said.append(line)
            if "Ready to accept connections" in line:
                return
        raise AssertionError(f"Redis does not start:\n{''.join(said)}")

    def kill(self) -> None:
        """kill -9; connections are refused from now on."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    end = kill

    def has_all_acknowledged(self) -> bool:
        """Whether nobody has a message in hand: kombu's worker does not come back when it is the
        acknowledging that fails, and is left to end itself (workers/liveness.py), which takes a
        minute."""
        with redis.Redis.from_url(self.url) as client:
            return client.hlen("unacked") == 0
