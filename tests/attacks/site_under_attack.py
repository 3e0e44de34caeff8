"""A whole demo of an attack's own: its folder, its port, its database; its processes by kind, and
its pages by HTTP as people use them."""

from __future__ import annotations

import http.client
import http.cookiejar
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Mapping
from pathlib import Path

import psycopg

from codegen_app.platform import postgres
from codegen_app.site.demo.processes import descendants
from tests.app.processes import ROOT, alive, interpreter

_START_LIMIT_S = 180
_ANSWER_LIMIT_S = 60
POINTS_A_BATCH = 3
_COMPILERS = ("zig", "clang", "ld.lld", "llvm-objdump", "objdump", "lld")


class Site:
    """The demo, started, killed and started again; its files are in ``var``, or a folder of its
    own, its processes get ``environment`` besides."""

    def __init__(self, var: Path | None = None, environment: Mapping[str, str] = {}) -> None:
        self.var = var or Path(tempfile.mkdtemp(prefix="kiln-attack-"))
        self.var.chmod(0o755)
        self._environment = environment
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.starts = 0
        self.output = ""
        self._process: subprocess.Popen[str] | None = None
        self._password = ""
        self._token_text = ""
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()), _NoRedirect()
        )

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def cluster(self) -> postgres.Cluster:
        """Its database server."""
        return postgres.cluster_for(self.var)

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        """The database, beside the application."""
        return psycopg.connect(self.cluster.url("kiln"))

    def start(self) -> None:
        """Start the demo and wait until it serves; it may say why not, and is asked again."""
        packages = [str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))]
        environment = {key: value for key, value in os.environ.items() if key != "DATABASE_URL"}
        environment |= {
            "KILN_VAR": str(self.var),
            "KILN_WORK_LEASE_S": "4",
            "KILN_WORK_RETRY_S": "1",
            "PYTHONPATH": ":".join(packages),
            **self._environment,
        }
        log = self.var / "demo.out"
        command = [interpreter(), "manage.py", "demo", "--no-models", "--port", str(self.port)]
        with log.open("w") as out:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=out, stderr=out, process_group=0
            )
        deadline = time.monotonic() + _START_LIMIT_S
        while "Kiln serves at" not in log.read_text():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the demo did not start:\n{log.read_text()}")
            time.sleep(0.05)
        self.starts += 1
        while not self._password:
            found = re.search(r"with the password (\S+)", log.read_text())
            if found:
                self._password = found[1]
                self._log_in()
            elif self._process.poll() is not None:
                raise RuntimeError(f"the demo ended:\n{log.read_text()}")

    def said(self) -> str:
        """What the demo said since its last start."""
        return (self.var / "demo.out").read_text()

    def is_up(self) -> bool:
        """Whether the demo's own process is there."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> int:
        """As Ctrl-C does; the exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(_START_LIMIT_S)

    def kill_all(self) -> None:
        """Whatever still runs."""
        if self._process is not None and self._process.poll() is None:
            for pid in self.all_processes():
                kill(pid)
            self._process.wait()

    def remove(self) -> None:
        """Everything, whatever still runs."""
        self.kill_all()
        postgres.remove(self.var)
        shutil.rmtree(self.var)

    # Processes

    def by_kind(self) -> dict[str, list[int]]:
        """Every process of the demo that may be killed, by what it is."""
        found: dict[str, list[int]] = {}
        if self._process is not None and self.is_up():
            found["supervisor"] = [self._process.pid]
        for pid in self._marked():
            kind = _kind(pid)
            if kind:
                found.setdefault(kind, []).append(pid)
        if server := self._postmaster():
            found["postmaster"] = [server]
            found["database backend"] = descendants(server)
        return {kind: pids for kind, pids in found.items() if pids}

    def all_processes(self) -> list[int]:
        """For a power-off."""
        pids = [*self._marked()]
        if server := self._postmaster():
            pids += [server, *descendants(server)]
        if self._process is not None and self.is_up():
            pids = [self._process.pid, *pids]
        return pids

    def wait_for_supervisor(self) -> None:
        """Collect the demo's own process once it was killed."""
        assert self._process is not None
        self._process.wait(_START_LIMIT_S)

    def _marked(self) -> list[int]:
        """What carries the supervisor's mark, and what that started: compilers and measuring
        children get an environment of their own."""
        mark = f"KILN_SUPERVISED={(self.var / 'log').resolve()}".encode()
        found: dict[int, None] = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    marked = mark in (folder / "environ").read_bytes().split(b"\0")
                except OSError:
                    continue
                if marked:
                    found.update(dict.fromkeys((int(folder.name), *descendants(int(folder.name)))))
        return [pid for pid in found if alive(pid)]

    def _postmaster(self) -> int | None:
        if not postgres.is_running(self.cluster):
            return None
        try:
            return int((self.cluster.data / "postmaster.pid").read_text().split()[0])
        except (OSError, IndexError, ValueError):
            return None

    # Pages

    def get(self, address: str) -> tuple[int, str, str]:
        """Status, body, and where it leads to; a status of 0 where nobody answered."""
        return self._open(urllib.request.Request(f"{self.url}{address}"))

    def post(
        self, address: str, fields: dict[str, str], file: tuple[str, bytes] | None = None
    ) -> tuple[int, str, str]:
        """As ``get``, sending a form."""
        token = self._token()
        boundary = uuid.uuid4().hex
        body = bytearray()
        for name, value in {**fields, "csrfmiddlewaretoken": token}.items():
            body += f"--{boundary}\r\nContent-Disposition: form-data; ".encode()
            body += f'name="{name}"\r\n\r\n{value}\r\n'.encode()
        if file:
            body += f"--{boundary}\r\nContent-Disposition: form-data; ".encode()
            body += f'name="file"; filename="{file[0]}"\r\n\r\n'.encode() + file[1] + b"\r\n"
        body += f"--{boundary}--\r\n".encode()
        kind = f"multipart/form-data; boundary={boundary}"
        headers = {"Content-Type": kind, "Referer": f"{self.url}{address}"}
        answer = self._open(urllib.request.Request(f"{self.url}{address}", bytes(body), headers))
        if answer[2].startswith("/login") and address != "/login/":  # the session is over
            self._log_in()
        return answer

    def send_results(self, key: str, number: int) -> int:
        """A batch of the ``number``-th revision; the answer's status."""
        if not self._token_text and not self._make_token():
            return 0
        names = (f"attack/{name}" for name in range(POINTS_A_BATCH))
        body = {name: {"latency": {"value": 1000.0 + number % 7}} for name in names}
        given = {"device": "Attacked GPU", "revision": f"r{number}"}
        headers = {
            "Authorization": f"Bearer {self._token_text}",
            "Content-Type": "application/json",
            "Idempotency-Key": key,
        }
        address = f"{self.url}/api/v1/results?{urllib.parse.urlencode(given)}"
        status, _, _ = self._open(
            urllib.request.Request(address, json.dumps(body).encode(), headers)
        )
        return status

    def _make_token(self) -> bool:
        fields = {"name": "attack", "scopes": "ingest", "days": "365"}
        _, body, _ = self.post("/tokens", fields)
        if found := re.search(r'id="token">([^<]+)<', body):
            self._token_text = found[1].strip()
        return bool(self._token_text)

    def _open(self, request: urllib.request.Request) -> tuple[int, str, str]:
        try:
            with self._opener.open(request, timeout=_ANSWER_LIMIT_S) as answer:
                return answer.status, answer.read().decode(), ""
        except urllib.error.HTTPError as answer:
            location = answer.headers.get("Location", "")
            try:
                return answer.code, answer.read().decode(), location
            except OSError:
                return 0, "", ""
        except (OSError, http.client.HTTPException):
            return 0, "", ""

    def _log_in(self) -> None:
        status, body, _ = self.post("/login/", {"username": "admin", "password": self._password})
        if status != 302:
            raise RuntimeError(f"no login: {status} {body[:500]}")

    def _token(self) -> str:
        for _ in range(3):
            _, body, _ = self.get("/login/")
            if found := re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', body):
                return found[1]
        return ""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """What a form leads to is the row that it made."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def kill(pid: int) -> bool:
    """SIGKILL; whether there was something to kill."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _kind(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        above = Path(f"/proc/{parent}/cmdline").read_bytes().decode(errors="replace")
    except (OSError, ValueError):
        return ""
    line = " ".join(words)
    if any(Path(words[0]).name.startswith(name) for name in _COMPILERS) or "ziglang" in line:
        return "compiler"
    if "gunicorn" in line:
        return "web worker" if "gunicorn" in above else "web"
    if "celery" in line:
        return "worker's child" if "celery" in above else "worker"
    return "measuring child" if "scheduler.benchmark" in line else "other child"
