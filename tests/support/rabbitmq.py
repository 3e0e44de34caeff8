"""A RabbitMQ of a test's own, which can be killed and come back with all it had."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from tests.support.ports import free_ports

# Debian's command in PATH changes to another user, whose folders it uses; this one is beside it.
PROGRAMS = "/usr/lib/rabbitmq/bin"
LIMIT_S = 120
_SETTINGS = """\
listeners.tcp.1 = 127.0.0.1:{port}
vm_memory_high_watermark.absolute = 256MiB
disk_free_limit.absolute = 1MB
log.console = true
log.console.level = warning
"""
# Two schedulers, which sleep when they have nothing to do.
_QUIET = "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none"


def lacking() -> str:
    """Why there is none here; "" where there is."""
    found = _program("rabbitmq-server") and _program("epmd")
    return "" if found else "there is no rabbitmq-server: apt-get install rabbitmq-server"


class RabbitMQ:
    """Its files are in ``folder``; it has ports, a node's name and a cookie that nobody else has,
    and a port mapper (epmd) of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._port, self._mapper_port, distribution_port = free_ports(3)
        self.url = f"amqp://guest:guest@127.0.0.1:{self._port}//"
        self._mapper: subprocess.Popen[bytes] | None = None
        self._server: subprocess.Popen[bytes] | None = None
        (folder / "rabbitmq.conf").write_text(_SETTINGS.format(port=self._port))
        (folder / "plugins").write_text("[].\n")
        (folder / "environment").write_text("")
        self._environment = {
            **os.environ,
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(self._mapper_port),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "environment"),
            "RABBITMQ_DIST_PORT": str(distribution_port),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_LOG_BASE": str(folder),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_NODENAME": "kiln-tests@localhost",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _QUIET,
        }

    def start(self) -> None:
        """Serve what was there when it was killed; returns once it does."""
        if self._mapper is None:
            self._mapper = self._run("epmd", "-port", str(self._mapper_port))
            self._wait_for_mapper()
        # It tells systemd when it is ready. A socket's path has to be short.
        with (
            tempfile.TemporaryDirectory() as folder,
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready,
        ):
            ready.bind(f"{folder}/ready")
            ready.settimeout(1)
            self._environment["NOTIFY_SOCKET"] = f"{folder}/ready"
            self._server = self._run("rabbitmq-server")
            self._wait_for_server(ready)

    def kill(self) -> None:
        """kill -9; connections are refused from now on."""
        self._server = _killed(self._server)

    def end(self) -> None:
        """Leave nothing running."""
        self.kill()
        self._mapper = _killed(self._mapper)

    def has_all_acknowledged(self) -> bool:
        """It need not: a message that was in hand is given out again."""
        return True

    def _run(self, name: str, *options: str) -> subprocess.Popen[bytes]:
        program = _program(name)
        assert program, lacking()
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [program, *options],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
            )

    @property
    def _log(self) -> Path:
        return self._folder / "rabbitmq.log"

    def _wait_for_mapper(self) -> None:
        """Else the server would start a daemon of its own."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", self._mapper_port)) == 0:
                    return
            self._still_there(self._mapper, deadline)
            time.sleep(0.01)

    def _wait_for_server(self, ready: socket.socket) -> None:
        deadline = time.monotonic() + LIMIT_S
        while True:
            try:
                if b"READY=1" in ready.recv(4096).split():
                    return
            except TimeoutError:
                self._still_there(self._server, deadline)

    def _still_there(self, process: subprocess.Popen[bytes] | None, deadline: float) -> None:
        ended = process is None or process.poll() is not None
        log = self._log.read_text(errors="replace")[-4000:]
        assert not ended, f"RabbitMQ does not start:\n{log}"
        assert time.monotonic() < deadline, f"RabbitMQ is not ready:\n{log}"


def _program(name: str) -> str | None:
    path = os.pathsep.join((PROGRAMS, os.environ.get("PATH", os.defpath)))
    return shutil.which(name, path=path)


def _killed(process: subprocess.Popen[bytes] | None) -> None:
    if process is not None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
