"""An S3 of moto's as a process over loopback, which can be killed and come back with all it had."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from tests.app.processes import ROOT
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port

BUCKET = "kiln-tests"
KEYS = {"KILN_S3_ACCESS_KEY_ID": "AKIATESTS", "KILN_S3_SECRET_ACCESS_KEY": "of the tests"}


class S3Server:
    """moto notes each request in a file as it comes; a new process plays them back."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._record = folder / "requests"
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[str] | None = None

    def start(self, **environment: str) -> None:
        """Serve what was there when it was killed."""
        module = "tests.support.s3_process"
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, str(self._port), str(self._record)],
            cwd=ROOT,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        serves = threading.Event()
        threading.Thread(target=_read, args=(self._process, serves), daemon=True).start()
        assert serves.wait(PATIENCE_S), "moto does not start"

    def start_empty(self) -> None:
        """Serve nothing yet, whatever it had."""
        if self._process is None:
            self._record.unlink(missing_ok=True)
            self.start()
        else:
            self._ask("reset")
            self._ask("recorder/reset-recording")

    def kill(self) -> None:
        """kill -9; connections are refused from now on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def make_bucket(self) -> None:
        """The one that ``environment`` names."""
        self.client().create_bucket(Bucket=BUCKET)

    def client(self) -> Any:
        """To look at what it has, without Kiln."""
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=KEYS["KILN_S3_ACCESS_KEY_ID"],
            aws_secret_access_key=KEYS["KILN_S3_SECRET_ACCESS_KEY"],
            config=Config(retries={"total_max_attempts": 1}),
        )

    def names(self) -> set[str]:
        """All that is in the bucket."""
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        return {one["Key"] for page in pages for one in page.get("Contents", ())}

    def environment(self, **more: str) -> dict[str, str]:
        """Of a Kiln that has its artifacts here."""
        return {
            "KILN_STORAGE": "s3",
            "KILN_S3_BUCKET": BUCKET,
            "KILN_S3_ENDPOINT": self.url,
            "KILN_S3_PREFIX": "site/one",
            "KILN_S3_REGION": "us-east-1",
            "KILN_S3_TIMEOUT_S": "60",
            **KEYS,
            **more,
        }

    def _ask(self, what: str) -> None:
        request = urllib.request.Request(f"{self.url}/moto-api/{what}", method="POST")
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 200


def _read(process: subprocess.Popen[str], serves: threading.Event) -> None:
    """All that it says, a line a request: a full pipe would stop it."""
    assert process.stdout is not None
    for line in process.stdout:
        if "serves" in line:
            serves.set()
