"""Upload results to Kiln and compare revisions. This single file needs only Python 3.9 or later
and can be copied.

    python -m kiln_client push results.json --url https://kiln.example --token-file token
    python -m kiln_client compare base:main branch:topic --fail-on regression \\
        --url https://kiln.example --token-file token > comparison.md

push accepts Kiln's points, JSON of pytest-benchmark, Google Benchmark or Bencher (BMF), and logs
with AUTOTUNE blocks of Inductor ("-" reads standard input). Options (--device, --revision, ...)
supply values that are missing from the file. In a Git checkout, the revision and its time are taken
from Git.

Each batch has a key, by default a hash of the file and the options. A batch that is sent twice, by
a retry or by a second run of the command, is stored once. Temporary failures are retried with the
same key. Exit statuses: 0 stored, 2 wrong usage or unreadable file, 3 rejected (the answer names
the row and the field), 4 no valid token with the scope, 5 not reached after all tries.

compare writes Markdown for a pull request to standard output. A side is a commit or version (or a
prefix), branch:NAME for the newest revision of a branch, or run:NUMBER for a tuning run. The before
side can be base:NAME, the newest revision of that branch that is older than the first revision of
the after branch. Exit statuses: 0 no --fail-on condition is met, 1 a condition is met, 2 other
errors; nothing was compared.
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
PASSED, FAILED, ERROR = 0, 1, 2
FAIL_ON = {"regression": "slower", "unknown": "unknown", "gone": "gone"}
CONTEXT_FIELDS = (
    *("format", "device", "target", "toolchain", "revision", "revision-at", "branch"),
    *("repository", "measured-at"),
)
TEMPORARY_STATUSES = (408, 425, 429, 500, 502, 503, 504)
MAX_WAIT_S = 60.0


class ClientError(Exception):
    """A failure that a retry does not change, with the exit status."""

    def __init__(self, status: int, line: str) -> None:
        super().__init__(line)
        self.status = status


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuse redirects, so that the token is sent only to the given address."""

    def redirect_request(self, *_: object) -> None:
        """Return None: the answer is taken as it is."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options = make_parser().parse_args(arguments)
    comparing = options.command == "compare"
    try:
        if options.command == "pending":
            return pending(options)
        answer = compare(options) if comparing else push(options)
    except ClientError as failure:
        print_error(str(failure))
        return ERROR if comparing else failure.status
    if comparing:
        return write_comparison(answer, options)
    for part in answer.get("left_out", ()):
        print_error(f"left out: {part['where']}: {part['reason']}")
    sys.stdout.write(f"{json.dumps(answer)}\n")
    return STORED


def print_error(line: str) -> None:
    """Print a line on standard error."""
    sys.stderr.write(f"kiln_client: {line}\n")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="kiln_client",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("push", help="upload a file of results")
    command.add_argument("file", help='file with the results; "-" for standard input')
    command.add_argument(
        "--key", help="idempotency key of the batch (default: a hash of its content)"
    )
    for name in CONTEXT_FIELDS:
        command.add_argument(f"--{name}", default="", help="value for every point")
    add_connection(command)
    command = commands.add_parser("compare", help="compare two revisions over all series")
    command.add_argument("before", help="a commit, branch:NAME, run:NUMBER or base:NAME")
    command.add_argument("after", help="a commit, branch:NAME or run:NUMBER")
    command.add_argument(
        "--fail-on",
        action="append",
        default=[],
        choices=tuple(FAIL_ON),
        help="exit with status 1 if a series is slower, unknown or gone; repeatable",
    )
    command.add_argument(
        "--group",
        choices=("graph", "device", "metric"),
        help="grouping of geometric means (default: graph)",
    )
    command.add_argument(
        "--least-effect", type=float, help="minimum effect: 0.01 is 1%% (default: 0.01)"
    )
    command.add_argument("--repository", default="", help="repository of both revisions")
    command.add_argument(
        "--json", action="store_true", help="print the JSON answer instead of Markdown"
    )
    add_connection(command)
    command = commands.add_parser("pending", help="list requests for re-measurement")
    for name in ("device-name", "repository", "branch", "revision"):
        command.add_argument(f"--{name}", default="", help="list only requests with this value")
    add_connection(command)
    return parser


def add_connection(command: argparse.ArgumentParser) -> None:
    """Add the options of the connection to Kiln."""
    command.add_argument("--url", required=True, help="URL of the Kiln site")
    command.add_argument(
        "--token-file", help="file with the token (default: the variable KILN_TOKEN)"
    )
    command.add_argument(
        "--tries", type=int, default=6, help="maximum number of tries (default: 6)"
    )
    command.add_argument(
        "--timeout", type=float, default=60.0, help="timeout per try in seconds (default: 60)"
    )


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """Request the comparison; return Kiln's answer. Raises ``ClientError``."""
    names = ("before", "after", "group", "least_effect", "repository")
    values = {name: getattr(options, name) for name in names}
    query = {name: value for name, value in values.items() if value not in (None, "")}
    if not options.json:
        query["limit"] = 0
    request = urllib.request.Request(  # noqa: S310
        api_url(options.url, "compare", query), headers=auth_headers(options.token_file)
    )
    return send(request, options.tries, options.timeout, "counts")


def write_comparison(answer: dict[str, Any], options: argparse.Namespace) -> int:
    """Write the comparison; return the exit status."""
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr] # whatever the locale is
    sys.stdout.write(f"{json.dumps(answer)}\n" if options.json else answer["markdown"])
    if not answer["compared"]:
        print_error(
            "no comparable series: use --fail-on unknown and --fail-on gone to fail in this case"
        )
    failing = [name for name in options.fail_on if answer["counts"][FAIL_ON[name]]]
    for name in dict.fromkeys(failing):
        print_error(f"{name}: {answer['counts'][FAIL_ON[name]]} series; {answer['url']}")
    return FAILED if failing else PASSED


def pending(options: argparse.Namespace) -> int:
    """Write the requests for re-measurement, a line of JSON each; return the exit status. Raises
    ``ClientError``."""
    names = ("device_name", "repository", "branch", "revision")
    query = {name: getattr(options, name) for name in names if getattr(options, name)}
    after: Any = 0
    while after is not None:
        request = urllib.request.Request(  # noqa: S310
            api_url(options.url, "requests", {**query, "after": after}),
            headers=auth_headers(options.token_file),
        )
        answer = send(request, options.tries, options.timeout, "requests")
        for pending_request in answer["requests"]:
            sys.stdout.write(f"{json.dumps(pending_request)}\n")
        after = answer.get("next")
    return PASSED


def push(options: argparse.Namespace) -> dict[str, Any]:
    """Send the file; return Kiln's answer. Raises ``ClientError``."""
    body = read_file(options.file)
    context = {
        name.replace("-", "_"): getattr(options, name.replace("-", "_")) for name in CONTEXT_FIELDS
    }
    if not context["revision"] and b'"commit_info"' not in body:  # pytest-benchmark's own is better
        context.update(git_revision())
    context = {name: text for name, text in context.items() if text}
    key = options.key or idempotency_key(body, context)
    address = api_url(options.url, "results", context)
    headers = {
        **auth_headers(options.token_file),
        "Idempotency-Key": key,
        "Content-Type": "application/json" if body.lstrip()[:1] in (b"{", b"[") else "text/plain",
    }
    request = urllib.request.Request(address, body, headers, method="POST")  # noqa: S310
    return send(request, options.tries, options.timeout, "points")


def api_url(url: str, path: str, query: dict[str, Any]) -> str:
    """Return an address of the API. Raises ``ClientError``."""
    address = f"{url.rstrip('/')}/api/v1/{path}"
    if query:
        address += "?" + urllib.parse.urlencode(query)
    if urllib.parse.urlsplit(address).scheme not in ("http", "https"):
        raise ClientError(USAGE, f"{url}: the URL must begin with http:// or https://")
    return address


def auth_headers(token_file: str | None) -> dict[str, str]:
    """Return the headers that authenticate a request."""
    return {"Authorization": f"Bearer {read_token(token_file)}", "User-Agent": "kiln_client/1"}


def send(request: urllib.request.Request, tries: int, timeout: float, key: str) -> dict[str, Any]:
    """Send a request, with retries, and return the answer, which has the ``key``."""
    opener = urllib.request.build_opener(NoRedirects)
    reason = "not tried"
    for attempt in range(max(1, tries)):
        wait_s = min(MAX_WAIT_S, 2.0**attempt) * random.uniform(0.5, 1.0)  # noqa: S311
        try:
            with opener.open(request, timeout=timeout) as response:
                return parse_answer(response.read(), key)
        except urllib.error.HTTPError as error:
            reason = f"{error.code}: {error_line(error)}"
            if error.code in (401, 403):
                raise ClientError(NO_TOKEN, reason) from None
            if error.code not in TEMPORARY_STATUSES:
                raise ClientError(REFUSED, reason) from None
            wait_s = retry_after_s(error.headers.get("Retry-After"), wait_s)
        except (OSError, HTTPException, ValueError) as error:  # URLError and timeouts are OSErrors
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        if attempt + 1 < tries:
            sys.stderr.write(f"kiln_client: {reason}; retrying in {wait_s:.0f} s\n")
            time.sleep(wait_s)
    raise ClientError(NOT_REACHED, f"not reached in {max(1, tries)} tries: {reason}")


def parse_answer(data: bytes, key: str) -> dict[str, Any]:
    """Return the answer's JSON. Raises ``ValueError`` for the answer of another server, such as a
    proxy."""
    answer = json.loads(data)
    if not isinstance(answer, dict) or key not in answer:
        raise ValueError("the answer is not from Kiln")
    return answer


def error_line(error: urllib.error.HTTPError) -> str:
    """Return the error's message."""
    try:
        return str(json.loads(error.read())["error"])
    except (OSError, ValueError, KeyError, TypeError, HTTPException):
        return str(error.reason)


def retry_after_s(header: str | None, default_s: float) -> float:
    """Return the seconds to wait by ``Retry-After``: a number of seconds, or a date."""
    if not header:
        return default_s
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(header).timestamp() - time.time()
        except (TypeError, ValueError):
            return default_s
    return default_s if math.isnan(seconds) else min(max(seconds, 0.0), MAX_WAIT_S)


def read_file(name: str) -> bytes:
    """Return the content of a file."""
    try:
        if name == "-":
            return sys.stdin.buffer.read()
        with open(name, "rb") as file:  # noqa: PTH123
            return file.read()
    except OSError as error:
        raise ClientError(USAGE, f"{name} cannot be read: {error.strerror}") from None


def read_token(name: str | None) -> str:
    """Return the token, from its file or the environment: others can see a command line."""
    text = os.environ.get("KILN_TOKEN", "") if name is None else read_file(name).decode("latin-1")
    token = text.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ClientError(USAGE, "no token: use --token-file or set KILN_TOKEN")
    return token


def idempotency_key(body: bytes, context: dict[str, Any]) -> str:
    """Return the hash of a batch and its options."""
    digest = hashlib.sha256(json.dumps(context, sort_keys=True).encode())
    digest.update(b"\n" + body)
    return digest.hexdigest()


def git_revision() -> dict[str, Any]:
    """Return commit, commit time and branch of the current Git checkout; {} without one."""
    try:
        commit, committed_at = git("log", "-1", "--format=%H %cI").split()
        dirty = "-dirty" if git("status", "--porcelain", "--untracked-files=no") else ""
        branch = git("rev-parse", "--abbrev-ref", "HEAD")
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    revision = {"revision": commit + dirty, "revision_at": committed_at}
    return revision if branch == "HEAD" else {**revision, "branch": branch}


def git(*arguments: str) -> str:
    """Run Git and return its output."""
    command = ["git", *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    return answer.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
