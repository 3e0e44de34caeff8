"""An OpenID provider as a process of its own, and what people do there."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import requests

from codegen_app.platform.config import sign_in
from codegen_app.platform.config.sign_in import Provider
from tests.app.processes import ROOT
from tests.support.oidc_process import CLIENT, SECRET
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port


class OidcServer:
    """The process; its requests go to its standard error, which nobody keeps."""

    def __init__(self) -> None:
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Serve; a later process has other keys, as after a rotation."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.oidc_process", str(self._port)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "serves\n"

    def kill(self) -> None:
        """Away from now on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def says(self, **what: Any) -> None:
        """Of the next people: ``person``'s claims, and faults (``oidc_process.py``)."""
        data = json.dumps(what).encode()
        kind = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/next", data, kind, method="POST")
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 200

    def provider(self, **more: str) -> Provider:
        """Kiln's settings of it."""
        made = sign_in.provider(self.environment(**more))
        assert made is not None
        return made

    def environment(self, **more: str) -> dict[str, str]:
        """The same as variables."""
        return {
            "KILN_OIDC_ISSUER": self.url,
            "KILN_OIDC_CLIENT_ID": CLIENT,
            "KILN_OIDC_CLIENT_SECRET": SECRET,
            "KILN_SITE_URL": "http://testserver",
            "KILN_OIDC_NAME": "Team Login",
            **more,
        }

    def agree(self, address: str) -> str:
        """Press the button on the provider's page: the path and query that lead back to Kiln."""
        answer = requests.post(address, allow_redirects=False, timeout=PATIENCE_S)
        assert answer.status_code == 302, answer.text
        parts = urlsplit(answer.headers["Location"])
        return f"{parts.path}?{parts.query}"
