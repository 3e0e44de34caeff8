"""The real application served on loopback, local workers that compile, and remote workers that have
nothing but an address and a token."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.app.processes import ROOT, worker_environment
from tests.support.ports import free_port

LIMIT_S = 600
GUNICORN = (sys.executable, "-m", "gunicorn", "--config", "python:codegen_app.platform.config.web")
CELERY = (
    sys.executable,
    "-m",
    "celery",
    "--app",
    "codegen_app.platform.config.celery",
    "--quiet",
    "worker",
)
JOIN = (sys.executable, "-m", "scheduler.commands.kiln", "worker", "join")


class Site:
    """Processes of one test, on its database; all are gone at its end."""

    def __init__(self, var: Path) -> None:
        self.var = var
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.server: subprocess.Popen[bytes] | None = None
        self._running: list[subprocess.Popen[bytes]] = []
        self._environment = worker_environment(var, "database://localhost") | {
            "KILN_WORKER_POLL_S": "1",
            "KILN_WORK_RETRY_S": "1",
        }
        self._environment.pop("DJANGO_ALLOW_ASYNC_UNSAFE", None)

    def serve(self) -> None:
        """Start the web server and wait until it answers."""
        command = (*GUNICORN, "--bind", f"127.0.0.1:{self.port}", "--workers", "1")
        self.server = self._start(command, "web.log", ROOT, self._environment)
        self.wait(self._answers, "answer of the web server")

    def compile(self) -> None:
        """Start a worker that prepares and compiles, and measures nothing."""
        options = ("--queues", "prepare,compile", "--hostname", "test@%h")
        quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
        self._start((*CELERY, *options, *quiet), "celery.log", ROOT, self._environment)

    def join(self, name: str, token: str, *options: str) -> subprocess.Popen[bytes]:
        """Start a remote worker in an empty folder of its own: it has the address and the token."""
        folder = self.var / name
        folder.mkdir(exist_ok=True)
        environment = {
            "KILN_TOKEN": token,
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),  # where it is installed
        }
        command = (*JOIN, self.url, "--folder", str(folder), *options)
        return self._start(command, f"{name}.log", folder, environment)

    def kill(self, process: subprocess.Popen[bytes] | None) -> None:
        """kill -9, with whatever it started."""
        assert process is not None
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        """End all of them."""
        for process in self._running:
            self.kill(process)

    def said(self, name: str) -> str:
        """The log of a process."""
        return (self.var / f"{name}.log").read_text()

    def wait(self, condition: Callable[[], object], what: str) -> None:
        """Until it is so."""
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            if time.monotonic() > deadline:
                logs = "\n".join(
                    f"== {log.name}\n{log.read_text()[-3000:]}" for log in self.var.glob("*.log")
                )
                pytest.fail(f"no {what}\n{logs}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        with suppress(OSError), urllib.request.urlopen(f"{self.url}/healthz", timeout=5):
            return True
        return False

    def _start(
        self, command: tuple[str, ...], log: str, folder: Path, environment: dict[str, str]
    ) -> subprocess.Popen[bytes]:
        with (self.var / log).open("ab") as output:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                process_group=0,
            )
        self._running.append(process)
        return process
