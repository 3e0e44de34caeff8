"""Send results to Kiln: one file, of Python's standard library alone (3.9 or later). Copy it.

    python -m kiln_client push results.json --url https://kiln.example --token-file token

Takes Kiln's points, the JSON of pytest-benchmark, Google Benchmark or Bencher (BMF), and logs with
Inductor's AUTOTUNE blocks ("-" is the standard input). What a file does not say itself is said by
options (--device, --revision, ...); in a Git checkout the revision and its moment come from there.

A batch has a key, made of the file and of all that is said with it: what is sent again, by a retry
or by a second run of this command, is stored once. Temporary failures are tried again with the same
key. Exit statuses: 0 stored, 2 wrong usage or an unreadable file, 3 refused (the answer names the
row and the field), 4 no valid token or none with the scope, 5 not reached after all tries.
"""

from __future__ import annotations

import argparse
import email.utils
import hashlib
import json
import math
import os
import random
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException
from typing import Any

STORED, USAGE, REFUSED, NO_TOKEN, NOT_REACHED = 0, 2, 3, 4, 5
STATED = (
    *("format", "device", "target", "toolchain", "revision", "revision-at", "branch"),
    *("repository", "measured-at"),
)
TEMPORARY = (408, 425, 429, 500, 502, 503, 504)
LONGEST_WAIT_S = 60.0


class Failed(Exception):  # noqa: N818 - this file is read by people of other projects
    """What cannot be mended by another try, with the exit status."""

    def __init__(self, status: int, line: str) -> None:
        super().__init__(line)
        self.status = status


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A token goes to the address that was given, and to no other."""

    def redirect_request(self, *_: object) -> None:
        """None: the answer is taken as it is."""


def main(arguments: list[str] | None = None) -> int:
    """Do as the command line says; the exit status."""
    options = parser().parse_args(arguments)
    try:
        answer = push(options)
    except Failed as failure:
        sys.stderr.write(f"kiln_client: {failure}\n")
        return failure.status
    for part in answer.get("left_out", ()):
        sys.stderr.write(f"kiln_client: left out: {part['where']}: {part['reason']}\n")
    sys.stdout.write(f"{json.dumps(answer)}\n")
    return STORED


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="kiln_client",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command = made.add_subparsers(dest="command", required=True).add_parser(
        "push", help="send a file of results"
    )
    command.add_argument("file", help='the results; "-" is the standard input')
    command.add_argument("--url", required=True, help="where Kiln is")
    command.add_argument("--token-file", help="holds the token; else KILN_TOKEN does")
    command.add_argument("--key", help="the batch's idempotency key; else one of its content")
    command.add_argument("--tries", type=int, default=6, help="how often at most (6)")
    command.add_argument("--timeout", type=float, default=60.0, help="seconds for a try (60)")
    for name in STATED:
        command.add_argument(f"--{name}", default="", help="said of every point")
    return made


def push(options: argparse.Namespace) -> dict[str, Any]:
    """Send the file; Kiln's answer. Raises ``Failed``."""
    body = read_file(options.file)
    stated = {name.replace("-", "_"): getattr(options, name.replace("-", "_")) for name in STATED}
    if not stated["revision"] and b'"commit_info"' not in body:  # pytest-benchmark's own is better
        stated.update(checkout())
    stated = {name: text for name, text in stated.items() if text}
    key = options.key or key_of(body, stated)
    address = f"{options.url.rstrip('/')}/api/v1/results"
    if stated:
        address += "?" + urllib.parse.urlencode(stated)
    if urllib.parse.urlsplit(address).scheme not in ("http", "https"):
        raise Failed(USAGE, f"{options.url}: an address begins with http:// or https://")
    headers = {
        "Authorization": f"Bearer {read_token(options.token_file)}",
        "Idempotency-Key": key,
        "Content-Type": "application/json" if body.lstrip()[:1] in (b"{", b"[") else "text/plain",
        "User-Agent": "kiln_client/1",
    }
    request = urllib.request.Request(address, body, headers, method="POST")  # noqa: S310
    return send(request, options.tries, options.timeout)


def send(request: urllib.request.Request, tries: int, timeout: float) -> dict[str, Any]:
    """The answer, after as many tries as are needed and allowed; each has the same key."""
    opener = urllib.request.build_opener(NoRedirects)
    reason = "not tried"
    for turn in range(max(1, tries)):
        wait = min(LONGEST_WAIT_S, 2.0**turn) * random.uniform(0.5, 1.0)  # noqa: S311
        try:
            with opener.open(request, timeout=timeout) as response:
                return answer_of(response.read())
        except urllib.error.HTTPError as error:
            reason = f"{error.code}: {line_of(error)}"
            if error.code in (401, 403):
                raise Failed(NO_TOKEN, reason) from None
            if error.code not in TEMPORARY:
                raise Failed(REFUSED, reason) from None
            wait = seconds_of(error.headers.get("Retry-After"), wait)
        except (OSError, HTTPException, ValueError) as error:  # URLError and timeouts are OSErrors
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        if turn + 1 < tries:
            sys.stderr.write(f"kiln_client: {reason}; again in {wait:.0f} s\n")
            time.sleep(wait)
    raise Failed(NOT_REACHED, f"not reached in {max(1, tries)} tries: {reason}")


def answer_of(data: bytes) -> dict[str, Any]:
    """The answer's JSON. Raises ``ValueError`` for something else, as of a proxy."""
    answer = json.loads(data)
    if not isinstance(answer, dict) or "points" not in answer:
        raise ValueError("the answer is not Kiln's")
    return answer


def line_of(error: urllib.error.HTTPError) -> str:
    """What a refusal says, in one line."""
    try:
        return str(json.loads(error.read())["error"])
    except (OSError, ValueError, KeyError, TypeError, HTTPException):
        return str(error.reason)


def seconds_of(given: str | None, otherwise: float) -> float:
    """How long ``Retry-After`` asks to wait: a number of seconds, or a moment."""
    if not given:
        return otherwise
    try:
        seconds = float(given)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(given).timestamp() - time.time()
        except (TypeError, ValueError):
            return otherwise
    return otherwise if math.isnan(seconds) else min(max(seconds, 0.0), LONGEST_WAIT_S)


def read_file(name: str) -> bytes:
    """The bytes of the results."""
    try:
        if name == "-":
            return sys.stdin.buffer.read()
        with open(name, "rb") as file:  # noqa: PTH123
            return file.read()
    except OSError as error:
        raise Failed(USAGE, f"{name} cannot be read: {error.strerror}") from None


def read_token(name: str | None) -> str:
    """The token, from its file or the environment: a command line is seen by others."""
    text = os.environ.get("KILN_TOKEN", "") if name is None else read_file(name).decode("latin-1")
    token = text.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise Failed(USAGE, "there is no token: --token-file names its file, or KILN_TOKEN has it")
    return token


def key_of(body: bytes, stated: dict[str, Any]) -> str:
    """The same for the same batch, whoever sends it."""
    made = hashlib.sha256(json.dumps(stated, sort_keys=True).encode())
    made.update(b"\n" + body)
    return made.hexdigest()


def checkout() -> dict[str, Any]:
    """Of the Git checkout that this runs in: commit, its moment, branch; nothing elsewhere."""
    try:
        commit, moment = git("log", "-1", "--format=%H %cI").split()
        dirty = "-dirty" if git("status", "--porcelain", "--untracked-files=no") else ""
        branch = git("rev-parse", "--abbrev-ref", "HEAD")
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    found = {"revision": commit + dirty, "revision_at": moment}
    return found if branch == "HEAD" else {**found, "branch": branch}


def git(*arguments: str) -> str:
    """What Git says."""
    command = ["git", *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    return answer.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
