"""Upload results to Kiln, compare revisions and report to a pull request. This single file needs
only Python 3.9 or later and can be copied.

    python -m kiln_client push results.json --url https://kiln.example --token-file token
    python -m kiln_client check --url https://kiln.example --token-file token
    python -m kiln_client compare base:main branch:topic --fail-on regression \\
        --url https://kiln.example --token-file token > comparison.md

push accepts Kiln's points, JSON of pytest-benchmark, Google Benchmark or Bencher (BMF), and logs
with AUTOTUNE blocks of Inductor ("-" reads standard input). Options (--device, --revision, ...)
supply values that are missing from the file.

The measured commit, its branch, merge base and pull request, and the repository are taken from the
environment of GitHub Actions, GitLab CI, Jenkins or Buildkite, and from the Git checkout. Options
override them, an empty value omits one, and --no-author omits the author. Standard error lists the
values with their origin.

Each batch has a key, by default a hash of the file and the options. A batch that is sent twice, by
a retry or by a second run of the command, is stored once. Temporary failures are retried with the
same key. Exit statuses: 0 stored, 2 wrong usage or unreadable file, 3 rejected (the answer names
the row and the field), 4 no valid token with the scope, 5 not reached after all tries.

compare writes Markdown for a pull request to standard output. A side is a commit or version (or a
prefix), branch:NAME for the newest revision of a branch, or run:NUMBER for a tuning run. The before
side can be base:NAME, the merge base with that branch, or base: for that with the trunk.

check compares this commit with the branch that it forked from, writes the same Markdown, and
reports to GitHub (check run or commit status, and a comment on the pull request) or GitLab (commit
status and a note on the merge request) with CI's own token: GITHUB_TOKEN or GITLAB_TOKEN. A failed
report is printed and does not change the exit status.

Exit statuses of compare and check: 0 no --fail-on condition is met, 1 a condition is met, 2 other
errors, 3 no series could be compared (0 with --allow-nothing).

pending lists what to measure again, a line of JSON each: the open requests, and with --uncertain
also the series for which the comparison of this commit needs more measurements. skip answers a
request of a bisection whose revision cannot be measured.
"""

from __future__ import annotations

import argparse
import email.utils
import hashlib
import json
import math
import os
import random
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

STORED, USAGE, REFUSED, NO_TOKEN, NOT_REACHED = 0, 2, 3, 4, 5
PASSED, FAILED, ERROR, NOTHING_COMPARED = 0, 1, 2, 3
#: Conditions and the statuses of series that meet them.
FAIL_ON = {
    "regression": "slower",
    "uncertain": "uncertain",
    "unknown": "unknown",
    "gone": "gone",
}
#: Values of the measured commit, which the CI system and Git know.
COMMIT_FIELDS = (
    *("revision", "revision_at", "branch", "default_branch", "merge_base", "merge_base_at"),
    *("pull_request", "repository", "subject", "author"),
)
#: Of these, those that a Kiln of another version may not know.
LATER_FIELDS = {
    *("default_branch", "merge_base", "merge_base_at", "pull_request", "subject", "author"),
}
CONTEXT_FIELDS = ("format", "device", "target", "toolchain", *COMMIT_FIELDS, "measured_at")
TEMPORARY_STATUSES = (408, 425, 429, 500, 502, 503, 504)
MAX_WAIT_S = 60.0
MAX_ROWS = 1_000  # of a comparison, for its report
MAX_PAGES = 100  # of comments
#: The limits of the forges, in characters.
MAX_CHECK, MAX_GITHUB_COMMENT, MAX_GITLAB_NOTE = 65_535, 65_536, 1_000_000
AGENT = {"User-Agent": "kiln_client/1"}


class ClientError(Exception):
    """A failure that a retry does not change, with the exit status and, if a server refused the
    request, the HTTP status."""

    def __init__(self, status: int, line: str, http_status: int = 0) -> None:
        super().__init__(line)
        self.status = status
        self.http_status = http_status


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options = make_parser().parse_args(arguments)
    try:
        return COMMANDS[options.command](options)
    except ClientError as failure:
        print_error(str(failure))
        return ERROR if options.command in ("compare", "check") else failure.status


def print_error(line: str) -> None:
    """Print a line on standard error."""
    sys.stderr.write(f"kiln_client: {one_line(line)}\n")


# ---- command line --------------------------------------------------------------------------------


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
    add_values(command, *CONTEXT_FIELDS)
    command.add_argument("--no-author", action="store_true", help="do not send the author")
    add_connection(command)
    command = commands.add_parser("compare", help="compare two revisions over all series")
    command.add_argument("before", help="a commit, branch:NAME, run:NUMBER or base:NAME")
    command.add_argument("after", help="a commit, branch:NAME or run:NUMBER")
    command.add_argument("--repository", help="repository of both revisions")
    command.add_argument(
        "--json", action="store_true", help="print the JSON answer instead of Markdown"
    )
    add_comparison(command, "no condition")
    add_connection(command)
    command = commands.add_parser("check", help="compare this commit and report to the forge")
    add_side(command)
    command.add_argument(
        "--name", type=check_name, default="kiln", help="name of the check (default: kiln)"
    )
    command.add_argument("--no-comment", action="store_true", help="do not write a comment")
    add_comparison(command, "regression")
    add_connection(command)
    command = commands.add_parser("pending", help="list what to measure again")
    command.add_argument("--device-name", help="list only this device model")
    command.add_argument(
        "--uncertain",
        action="store_true",
        help="list requests for this commit, and what its comparison needs more measurements of",
    )
    add_side(command)
    add_connection(command)
    command = commands.add_parser("skip", help="state that a requested revision cannot be measured")
    command.add_argument("request", type=int, help="the id of a request of a bisection")
    command.add_argument("--reason", required=True, help='for example "does not build"')
    add_connection(command)
    return parser


def add_values(command: argparse.ArgumentParser, *names: str) -> None:
    """Add options for values that the points of a file do not state."""
    for name in names:
        origin = " (default: from the CI system or Git)" if name in COMMIT_FIELDS else ""
        command.add_argument(f"--{name.replace('_', '-')}", help=f"value of every point{origin}")


def add_side(command: argparse.ArgumentParser) -> None:
    """Add the before side, and the values of this commit that the comparison depends on."""
    command.add_argument(
        "before", nargs="?", help="default: the merge base with the target or default branch"
    )
    for name in ("revision", "branch", "default-branch", "pull-request", "repository"):
        command.add_argument(f"--{name}", help="default: from the CI system or Git")


def add_comparison(command: argparse.ArgumentParser, default: str) -> None:
    """Add the options of a comparison."""
    command.add_argument(
        "--fail-on",
        action="append",
        choices=tuple(FAIL_ON),
        help="exit with status 1 if a series is slower, uncertain, unknown or gone; repeatable"
        f" (default: {default})",
    )
    command.add_argument(
        "--allow-nothing",
        action="store_true",
        help="exit with status 0 instead of 3 if no series could be compared",
    )
    command.add_argument(
        "--group",
        choices=("graph", "device", "metric"),
        help="grouping of geometric means (default: graph)",
    )
    command.add_argument(
        "--least-effect", type=float, help="minimum effect: 0.01 is 1%% (default: 0.01)"
    )


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


def check_name(text: str) -> str:
    """Return the name of a check, which is part of an HTML comment. Raises
    ``argparse.ArgumentTypeError``."""
    if not re.fullmatch(r"[A-Za-z0-9](?:[ ._/-]?[A-Za-z0-9]){0,59}", text):
        raise argparse.ArgumentTypeError(
            "expected up to 60 letters and digits, with single spaces or ._/- between them"
        )
    return text


# ---- commands ------------------------------------------------------------------------------------


def push(options: argparse.Namespace) -> int:
    """Send the file; print Kiln's answer. Raises ``ClientError``."""
    body = read_file(options.file)
    explicit = explicit_values(options, COMMIT_FIELDS)
    facts = find_facts(os.environ, explicit)
    if options.no_author:
        facts.pop("author", None)
    revision = facts.get("revision", NO_FACT)
    # pytest-benchmark recorded the commit when it measured; the checkout may have moved on.
    has_commit = b'"commit_info"' in body and revision.origin == GIT_HEAD
    if has_commit or ("revision" not in explicit and is_of_others(body, revision.value)):
        kept = {"repository", "default_branch", *explicit}
        facts = {name: fact for name, fact in facts.items() if name in kept}
    print_facts(facts)
    context = {name: getattr(options, name, None) or "" for name in CONTEXT_FIELDS}
    context.update({name: fact.value for name, fact in facts.items() if name in COMMIT_FIELDS})
    context = {name: text for name, text in context.items() if text}
    answer = send_results(options, body, context, optional=LATER_FIELDS - explicit.keys())
    for part in answer.get("left_out", ()):
        print_error(f"left out: {part['where']}: {part['reason']}")
    for note in answer.get("notes", ()):
        print_error(note)
    sys.stdout.write(f"{json.dumps(answer)}\n")
    return STORED


def is_of_others(body: bytes, revision: str) -> bool:
    """Return whether a file has points of stated revisions only, which do not include this one."""
    try:
        document = json.loads(body)
        default = document.get("defaults", {}).get("revision")
        revisions = [point.get("revision", default) for point in document["points"]]
    except (ValueError, LookupError, TypeError, AttributeError):
        return False  # a file of another tool, or one that Kiln rejects
    names = [row.get("name") if isinstance(row, dict) else row for row in revisions]
    return all(names) and not any(is_same_commit(str(name), revision) for name in names)


def is_same_commit(name: str, revision: str) -> bool:
    """Return whether both name one commit: a hash may be shortened, or have the suffix of a changed
    checkout."""
    short, full = sorted((text.removesuffix("-dirty") for text in (name, revision)), key=len)
    return short == full or bool(re.fullmatch("[0-9a-f]{7,}", short) and full.startswith(short))


def send_results(
    options: argparse.Namespace, body: bytes, context: dict[str, str], optional: set[str]
) -> dict[str, Any]:
    """Send a batch; return Kiln's answer. A value that is ``optional`` and that an older Kiln does
    not accept is omitted, with a message. Raises ``ClientError``."""
    content_type = "application/json" if body.lstrip()[:1] in (b"{", b"[") else "text/plain"
    while True:
        request = kiln_request(options, "results", context, body)
        request.add_header("Idempotency-Key", options.key or idempotency_key(body, context))
        request.add_header("Content-Type", content_type)
        try:
            return ask_kiln(options, request, "points")
        except ClientError as failure:
            unknown = re.search(r"\bquery\.(\w+): unknown field", str(failure))
            if unknown is None or unknown.group(1) not in optional & context.keys():
                raise
            print_error(f"this version of Kiln does not store {unknown.group(1)}: sent without it")
            del context[unknown.group(1)]


def compare(options: argparse.Namespace) -> int:
    """Write the comparison of two sides; return the exit status. Raises ``ClientError``."""
    answer = request_comparison(
        options,
        before=options.before,
        after=options.after,
        repository=options.repository,
        limit=None if options.json else 0,
    )
    write_output(f"{json.dumps(answer)}\n" if options.json else answer["markdown"])
    outcome = evaluate(answer, options.fail_on or [], options.allow_nothing)
    outcome.print_errors(answer["url"])
    return outcome.status


def check(options: argparse.Namespace) -> int:
    """Compare this commit with the branch that it forked from, report the result to the forge, and
    return the exit status. Raises ``ClientError`` if there is no comparison."""
    facts = find_facts(os.environ, explicit_values(options, COMMIT_FIELDS))
    print_facts(facts)
    answer = request_comparison(options, limit=MAX_ROWS, **comparison_sides(options, facts))
    outcome = evaluate(answer, options.fail_on or ["regression"], options.allow_nothing)
    url = urllib.parse.urljoin(f"{options.url.rstrip('/')}/", answer["url"])
    report = Report(options.name, outcome, url, report_markdown(answer, outcome, url, options))
    write_output(report.markdown)
    outcome.print_errors(url)
    try:
        forge = find_forge(os.environ, facts, options)
        tasks = [("check", forge.write_check)]
        if facts.get("pull_request", NO_FACT).value and not options.no_comment:
            tasks.append(("comment", forge.write_comment))
    except ClientError as failure:
        print_error(f"not reported: {failure}")
        tasks = []
    for title, write in tasks:
        try:
            write(report)
        except ClientError as failure:
            hint = f" ({forge.permission_hint})" if failure.http_status in (401, 403, 404) else ""
            print_error(f"{title} not written: {failure}{hint}")
    return outcome.status


def pending(options: argparse.Namespace) -> int:
    """Write what to measure again, a line of JSON each; return the exit status. Raises
    ``ClientError``."""
    filters = explicit_values(options, ("device_name", "repository", "branch", "revision"))
    uncertain: list[dict[str, Any]] = []
    if options.uncertain:
        facts = find_facts(os.environ, explicit_values(options, COMMIT_FIELDS))
        print_facts(facts)
        sides = comparison_sides(options, facts)
        filters.setdefault("revision", facts["revision"].value)
        answer = request_comparison(options, limit=MAX_ROWS, **sides)
        uncertain = rerun_rows(answer)
    after: Any = 0
    while after is not None:
        query = {name: value for name, value in filters.items() if value}
        request = kiln_request(options, "requests", {**query, "after": after})
        answer = ask_kiln(options, request, "requests")
        for row in answer["requests"]:
            sys.stdout.write(f"{json.dumps(row)}\n")
        after = answer.get("next")
    for row in uncertain:
        if options.device_name in (None, "", row["device_name"]):
            sys.stdout.write(f"{json.dumps(row)}\n")
    return PASSED


def skip(options: argparse.Namespace) -> int:
    """Skip a requested revision of a bisection; print Kiln's answer. Raises ``ClientError``."""
    body = json.dumps({"reason": options.reason}).encode()
    request = kiln_request(options, f"requests/{options.request}/skip", {}, body)
    request.add_header("Content-Type", "application/json")
    sys.stdout.write(f"{json.dumps(ask_kiln(options, request, 'bisection'))}\n")
    return STORED


COMMANDS = {"push": push, "compare": compare, "check": check, "pending": pending, "skip": skip}


def uncertain_series(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a comparison that more measurements may settle."""
    return [row for row in answer["rows"] if row["status"] in ("uncertain", "unknown")]


def rerun_rows(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what to measure again in the form of requests: what Kiln states, and the unknown
    series."""
    names = ("series", "problem", "sizes", "target", "toolchain", "metric", "unit", "why")
    after = answer["after"]
    commit = {
        "revision": after["name"],
        "branch": next(iter(after["branches"]), ""),
        "repository": after["repository"],
        "side": "after",
    }
    stated: list[dict[str, Any]] = answer.get("rerun", [])
    known = {row["series"] for row in stated}
    unknown = [row for row in uncertain_series(answer) if row["series"] not in known]
    return stated + [
        {**{name: row[name] for name in names}, "device_name": row["device"], **commit}
        for row in unknown
    ]


def explicit_values(options: argparse.Namespace, names: tuple[str, ...]) -> dict[str, str]:
    """Return the values that options state, by name; an empty one omits the value."""
    values = {name: getattr(options, name, None) for name in names}
    return {name: value for name, value in values.items() if value is not None}


# ---- comparisons ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """The result of a comparison: the exit status, a title, and the ``--fail-on`` conditions that
    are met, with their numbers of series."""

    status: int
    title: str
    failures: dict[str, int]

    def print_errors(self, url: str) -> None:
        """Print why the status is not 0, and that nothing was compared."""
        for name, count in self.failures.items():
            print_error(f"{name}: {count} series; {url}")
        if self.title == NOTHING:
            print_error(f"{NOTHING}: see the reasons at {url}")


NOTHING = "no series could be compared"


def evaluate(answer: dict[str, Any], conditions: list[str], allow_nothing: bool) -> Outcome:
    """Return the outcome of a comparison. Raises ``ClientError`` for a condition that Kiln does not
    know."""
    counts = answer["counts"]
    compared = answer.get("judged", answer["compared"])
    if "uncertain" in conditions and "uncertain" not in counts:
        raise ClientError(USAGE, "this version of Kiln has no status “uncertain”")
    failures = {name: counts[FAIL_ON[name]] for name in conditions if counts[FAIL_ON[name]]}
    if failures:
        title = ", ".join(f"{count:,} {FAIL_ON[name]}" for name, count in failures.items())
        return Outcome(FAILED, title, failures)
    if not compared:
        return Outcome(PASSED if allow_nothing else NOTHING_COMPARED, NOTHING, {})
    return Outcome(PASSED, f"{counts['slower']:,} slower of {compared:,} compared series", {})


def comparison_sides(options: argparse.Namespace, facts: Facts) -> dict[str, str]:
    """Return the sides of the comparison of this commit. Raises ``ClientError`` if one is
    unknown."""
    values = {name: fact.value for name, fact in facts.items()}
    if not values.get("revision"):
        raise ClientError(USAGE, "no commit: run in a Git checkout or specify --revision")
    before = options.before
    if not before:
        base = values.get("base_branch") or values.get("default_branch", "")
        if base and base == values.get("branch") and not values.get("pull_request"):
            raise ClientError(USAGE, f"this commit is on {base} itself: specify BEFORE")
        before = f"base:{base}"  # without a name, that of the repository's trunk
    return {
        "before": before,
        "after": values["revision"],
        "repository": values.get("repository", ""),
    }


def request_comparison(options: argparse.Namespace, **query: Any) -> dict[str, Any]:
    """Return Kiln's comparison of two sides. Raises ``ClientError``."""
    query["group"] = getattr(options, "group", None)
    query["least_effect"] = getattr(options, "least_effect", None)
    query = {name: value for name, value in query.items() if value not in (None, "")}
    return ask_kiln(options, kiln_request(options, "compare", query), "counts")


# ---- report --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Report:
    """What the forge is told: the name of the check, the outcome, the page of the comparison, and
    its Markdown."""

    name: str
    outcome: Outcome
    url: str
    markdown: str

    @property
    def marker(self) -> str:
        """The hidden first line, by which the comment is recognized and updated."""
        return f"<!-- kiln:{self.name} -->\n"

    def conclusion(self, failure: str) -> str:
        """Return the result in the words of a forge."""
        return failure if self.outcome.status else "success"


def report_markdown(
    answer: dict[str, Any], outcome: Outcome, url: str, options: argparse.Namespace
) -> str:
    """Return the report: the outcome, the largest slowdowns, what to measure again, and Kiln's
    tables."""
    site = url.partition("/compare/revisions")[0]
    sections = [f"### {options.name}: {outcome.title}"]
    if slower := [row for row in answer["rows"] if row["status"] == "slower"]:
        items = (f"1. {series_link(row, site)}: {ratio_text(row)}" for row in slower[:3])
        sections.append("\n".join(["**Largest slowdowns**", "", *items]))
    if uncertain := uncertain_series(answer):
        count = answer["counts"].get("uncertain", 0) + answer["counts"]["unknown"]
        items = (f"- {series_link(row, site)}{rerun_text(row)}" for row in uncertain[:10])
        more = [f"- [{count - 10:,} more]({url})"] if count > 10 else []
        how = "`kiln_client.py pending --uncertain` lists them for a script."
        title = f"**Measure these again** ({count:,}):"
        sections.append("\n".join([title, "", *items, *more, "", how]))
    tables = answer["markdown"].replace(f"]({answer['url']})", f"]({url})")
    return "\n\n".join([*sections, tables])


def series_link(row: Mapping[str, Any], site: str) -> str:
    """Return a link to the history of a series."""
    return f"[{code(row['name'])}]({site}/series/{int(row['series'])})"


def ratio_text(row: Mapping[str, Any]) -> str:
    """Return the slowdown of a series with its interval, n and cause."""
    interval = "" if row["low"] is None else f" ({row['low']:.3f} to {row['high']:.3f})"
    reason = f": {code(row['why'])}" if row["why"] else ""
    return f"{row['ratio']:.3f}{interval}, n {row['n_before']:,}, {row['n_after']:,}{reason}"


def rerun_text(row: Mapping[str, Any]) -> str:
    """Return how many measurements an uncertain series needs if Kiln states it, and why."""
    count = row.get("rerun", 0)
    side = " of the base" if row.get("rerun_side") == "before" else ""
    runs = f" {count:,} more measurement{'s' if count > 1 else ''}{side};" if count else ""
    return f":{runs} {code(row['why'])}"


def code(text: str) -> str:
    """Return untrusted text as a code span, in which nothing acts as Markdown, HTML, a mention or a
    link."""
    return f"`{one_line(text, 200).replace('`', chr(39)) or ' '}`"


def one_line(text: str, max_chars: int = 1_000) -> str:
    """Return text as one line of printable characters, cut to ``max_chars``."""
    printable = "".join(char if char.isprintable() else " " for char in text[:max_chars])
    return printable + " …" if len(text) > max_chars else printable


def cut(text: str, limit: int, url: str) -> str:
    """Return Markdown of at most ``limit`` characters; a line says so if it was cut."""
    if len(text) <= limit:
        return text
    end = f"\n\nThe report is longer than {limit:,} characters. [All series]({url})\n"
    shortened = text[: limit - len(end) - len("\n\n</details>")]
    shortened = shortened[: shortened.rfind("\n")]
    if shortened.count("<details>") > shortened.count("</details>"):
        shortened += "\n\n</details>"
    return shortened + end


def write_output(text: str) -> None:
    """Write text to standard output in UTF-8, whatever the locale is."""
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    sys.stdout.write(text)


# ---- forges --------------------------------------------------------------------------------------


def find_forge(
    environment: Mapping[str, str], facts: Facts, options: argparse.Namespace
) -> GitHub | GitLab:
    """Return the forge that the environment names. Raises ``ClientError`` if it names none, or has
    no token for it."""
    commit, request = (facts.get(name, NO_FACT).value for name in ("revision", "pull_request"))
    path = urllib.parse.urlsplit(facts.get("repository", NO_FACT).value).path.strip("/")
    if url := environment.get("GITHUB_API_URL", ""):
        hint = "in Actions: GITHUB_TOKEN: ${{ github.token }}"
        token = forge_token(environment, "GITHUB_TOKEN", hint)
        headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        project = environment.get("GITHUB_REPOSITORY") or path
        return GitHub(ForgeApi(url, headers, options), f"/repos/{project}", commit, request)
    if url := environment.get("CI_API_V4_URL", ""):
        hint = (
            "use a project access token with the scope api;"
            " CI_JOB_TOKEN can neither set commit statuses nor write notes"
        )
        token = forge_token(environment, "GITLAB_TOKEN", hint)
        project = environment.get("CI_PROJECT_ID") or urllib.parse.quote(path, safe="")
        target = environment.get("CI_MERGE_REQUEST_PROJECT_ID") or project
        return GitLab(
            api=ForgeApi(url, {"PRIVATE-TOKEN": token}, options),
            project=f"/projects/{project}",
            merge_request=f"/projects/{target}/merge_requests/{request}",
            # A pipeline for merged results runs on a commit of its own.
            commit=environment.get("CI_COMMIT_SHA") or commit,
            pipeline=environment.get("CI_PIPELINE_ID", ""),
        )
    raise ClientError(USAGE, "no forge: neither GITHUB_API_URL nor CI_API_V4_URL is set")


def forge_token(environment: Mapping[str, str], name: str, hint: str) -> str:
    """Return the token in a variable. Raises ``ClientError`` without it."""
    token = environment.get(name, "").strip()
    if not is_token(token):
        raise ClientError(USAGE, f"{name} is {'not a token' if token else 'not set'} ({hint})")
    return token


@dataclass(frozen=True)
class ForgeApi:
    """The API of a forge."""

    url: str
    headers: dict[str, str]
    options: argparse.Namespace

    def call(self, method: str, path: str, content: Any = None, tries: int | None = None) -> Any:
        """Send a request; return the JSON of the answer. Raises ``ClientError``."""
        address = check_scheme(f"{self.url.rstrip('/')}{path}")
        body = None if content is None else json.dumps(content).encode()
        headers = {**AGENT, **self.headers, "Content-Type": "application/json"}
        request = urllib.request.Request(address, body, headers, method=method)  # noqa: S310
        return send(request, self.options, json.loads, tries)

    def write_comment(
        self,
        text: str,
        marker: str,
        path: str,
        update: tuple[str, str],
        is_own: Callable[[dict[str, Any]], bool],
    ) -> None:
        """Update the first own comment that begins with the marker by the method and at the path
        ``update``, or add one at ``path``. Raises ``ClientError``."""
        for page in range(1, MAX_PAGES + 1):
            comments = self.call("GET", f"{path}?sort=asc&per_page=100&page={page}")
            for comment in comments:
                if is_own(comment) and str(comment.get("body")).startswith(marker):
                    method, address = update
                    self.call(method, f"{address}/{int(comment['id'])}", {"body": text})
                    return
            if len(comments) < 100:
                # A second try could add it twice.
                self.call("POST", path, {"body": text}, tries=1)
                return
        raise ClientError(REFUSED, f"more than {100 * MAX_PAGES:,} comments")


@dataclass(frozen=True)
class GitHub:
    """Check runs, statuses and comments of a repository on GitHub."""

    api: ForgeApi
    project: str
    commit: str
    pull_request: str
    permission_hint = (
        "the job needs the permissions “checks: write” and “pull-requests: write”; the token of a"
        " pull request from a fork can only read"
    )

    def write_check(self, report: Report) -> None:
        """Write a check run, or a commit status if the token does not belong to an app."""
        title, conclusion = report.outcome.title, report.conclusion("failure")
        summary = cut(report.markdown, MAX_CHECK, report.url)
        check_run = {
            **{"name": report.name, "head_sha": self.commit, "details_url": report.url},
            **{"status": "completed", "conclusion": conclusion},
            "output": {"title": title, "summary": summary},
        }
        try:
            self.api.call("POST", f"{self.project}/check-runs", check_run)
        except ClientError as failure:
            if failure.http_status not in (403, 404):
                raise
            print_error(f"check run not written: {failure}; writing a commit status instead")
            status = {"state": conclusion, "target_url": report.url, "description": title[:140]}
            path = f"{self.project}/statuses/{self.commit}"
            self.api.call("POST", path, {**status, "context": report.name})

    def write_comment(self, report: Report) -> None:
        """Write the comment on the pull request, or update it."""
        login = self._login()

        def is_own(comment: dict[str, Any]) -> bool:
            user = comment.get("user") or {}
            return bool(user.get("login") == login if login else user.get("type") == "Bot")

        text = cut(report.marker + report.markdown, MAX_GITHUB_COMMENT, report.url)
        comments = f"{self.project}/issues/{self.pull_request}/comments"
        update = "PATCH", f"{self.project}/issues/comments"
        self.api.write_comment(text, report.marker, comments, update, is_own)

    def _login(self) -> str:
        """Return the token's user; "" for the token of an app, whose comments are by a bot."""
        try:
            return str(self.api.call("GET", "/user")["login"])
        except ClientError as failure:
            if failure.http_status == 403:
                return ""
            raise


@dataclass(frozen=True)
class GitLab:
    """Commit statuses of a project on GitLab, and notes on its merge requests."""

    api: ForgeApi
    project: str
    merge_request: str
    commit: str
    pipeline: str
    permission_hint = (
        "GITLAB_TOKEN must be a token of this project with the scope api and the role Developer"
    )

    def write_check(self, report: Report) -> None:
        """Write a commit status into this pipeline."""
        status = {
            **{"state": report.conclusion("failed"), "name": report.name},
            **{"target_url": report.url, "description": report.outcome.title[:255]},
        }
        if self.pipeline:
            status["pipeline_id"] = self.pipeline
        self.api.call("POST", f"{self.project}/statuses/{self.commit}", status)

    def write_comment(self, report: Report) -> None:
        """Write the note on the merge request, or update it."""
        user = self.api.call("GET", "/user")["id"]

        def is_own(note: dict[str, Any]) -> bool:
            return bool((note.get("author") or {}).get("id") == user)

        text = cut(report.marker + report.markdown, MAX_GITLAB_NOTE, report.url)
        notes = f"{self.merge_request}/notes"
        self.api.write_comment(text, report.marker, notes, ("PUT", notes), is_own)


# ---- the measured commit -------------------------------------------------------------------------


@dataclass(frozen=True)
class Fact:
    """A value and its origin; without a value, the reason and how to supply it."""

    value: str
    origin: str


Facts = dict[str, Fact]
NO_FACT = Fact("", "")
GIT_HEAD = "git HEAD"
#: The configuration may print signatures before each commit.
GIT_LOG = ("log", "-1", "--no-show-signature")
#: How to fetch all history, by CI system.
FULL_HISTORY = {
    "GitHub Actions": "set fetch-depth: 0 of actions/checkout",
    "GitLab CI": "set the variable GIT_DEPTH: 0",
    "Jenkins": "disable “shallow clone”",
    "Buildkite": "remove --depth from BUILDKITE_GIT_CLONE_FLAGS",
}


def print_facts(facts: Facts) -> None:
    """Print the values of the measured commit with their origins, in one line."""
    parts = []
    for name in COMMIT_FIELDS:
        fact = facts.get(name, NO_FACT)
        title = name.replace("revision", "commit").replace("_at", " time").replace("_", " ")
        if fact.value or fact.origin:
            short = one_line(fact.value[:12] if is_hash(fact.value) else fact.value, 60)
            parts.append(f"{title} {short or 'unknown'} ({fact.origin})")
    if parts:
        print_error(", ".join(parts))


def find_facts(environment: Mapping[str, str], explicit: Mapping[str, str]) -> Facts:
    """Return the values of the measured commit, by field: those of options, else those of the CI
    system, else those of the Git checkout.

    A commit that only ``--revision`` states is looked up in the checkout; if it is not a hash of a
    commit there, nothing else is known of it. Raises ``ClientError`` if CI system and checkout
    disagree about the commit.
    """
    stated = {name: Fact(value, f"--{name.replace('_', '-')}") for name, value in explicit.items()}
    system, facts = ci_facts(environment)
    checkout = open_checkout()
    revision = facts.get("revision", NO_FACT)
    if explicit.get("revision") not in (None, "", revision.value):
        commit = checkout.resolve(explicit["revision"])
        if not commit:
            return stated
        if commit != revision.value:
            names = ("repository", "default_branch")
            facts = {name: facts[name] for name in names if name in facts}
    facts.update(stated)
    address = facts.get("repository", NO_FACT).value
    is_other = bool(system) and web_address(checkout.url) != address
    if not is_other and revision.value and "revision" not in explicit:
        check_head(checkout, revision)
    if checkout.problem and "revision" not in explicit:
        print_error(f"Git: {checkout.problem}")
    # A checkout of another repository may be that of a fork, which has the commit.
    if checkout.head and (not is_other or checkout.resolve(facts.get("revision", NO_FACT).value)):
        facts = {**git_facts(checkout, facts, system), **facts}
    if "tag" in facts and "branch" not in facts:  # without a branch, it would be on the trunk
        facts["branch"] = Fact(f"tags/{facts['tag'].value}", facts["tag"].origin)
    return facts


def check_head(checkout: Checkout, revision: Fact) -> None:
    """Check that the commit of the CI system is checked out, or merged into the commit that is.
    Raises ``ClientError`` if it is not."""
    if checkout.resolve(revision.value) not in ("", checkout.head, *checkout.parents):
        line = (
            f"commit {revision.value[:12]} ({revision.origin}) is not the one that is checked out,"
            f" {checkout.head[:12]}: specify the measured one with --revision"
        )
        raise ClientError(USAGE, line)


def is_hash(text: str) -> bool:
    """Return whether a text is the full hash of a commit."""
    return bool(re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", text))


def web_address(url: str) -> str:
    """Return a repository's address for browsers, the same for all its URLs, without credentials
    and ``.git``: ``git@host:team/x.git`` is ``https://host/team/x``."""
    text = url.strip().rstrip("/")
    short_form = re.fullmatch(r"(?:[^@/:]+@)?([^/:@]{2,}):(?!//)/?(.+)", text)
    if short_form:
        text = f"ssh://{short_form.group(1)}/{short_form.group(2)}"
    text = re.sub(r"//[^/]*@", "//", text[:-4] if text.endswith(".git") else text)
    try:
        parts = urllib.parse.urlsplit(text)
    except ValueError:
        return text
    if parts.scheme not in ("http", "https", "ssh", "git", "git+ssh"):
        return text
    host, _, port = parts.netloc.lower().partition(":")
    is_web = parts.scheme in ("http", "https")
    if is_web and port and port != {"http": "80", "https": "443"}[parts.scheme]:
        host = f"{host}:{port}"
    return f"{parts.scheme if is_web else 'https'}://{host}{parts.path}"


# ---- CI systems ----------------------------------------------------------------------------------


def ci_facts(environment: Mapping[str, str]) -> tuple[str, Facts]:
    """Return the name of the CI system and what its environment says; ("", {}) outside of CI."""
    systems: tuple[tuple[str, str, Callable[[Mapping[str, str]], Facts]], ...] = (
        ("GitHub Actions", "GITHUB_ACTIONS", github_facts),
        ("GitLab CI", "GITLAB_CI", gitlab_facts),
        ("Buildkite", "BUILDKITE", buildkite_facts),
        ("Jenkins", "JENKINS_URL", jenkins_facts),
    )
    for system, name, read in systems:
        if environment.get(name):
            facts = {field: fact for field, fact in read(environment).items() if fact != NO_FACT}
            if "repository" in facts:
                repository = facts["repository"]
                facts["repository"] = Fact(web_address(repository.value), repository.origin)
            return system, facts
    return "", {}


def variable(environment: Mapping[str, str], *names: str) -> Fact:
    """Return the first of these variables that is set."""
    for name in names:
        if value := environment.get(name, "").strip():
            return Fact(value, name)
    return NO_FACT


def fork_branch(owner: str, branch: Fact) -> Fact:
    """Return ``owner:branch`` for a fork's branch: it may have the name of a branch of the
    repository."""
    return Fact(f"{owner or 'fork'}:{branch.value}", branch.origin)


def github_facts(environment: Mapping[str, str]) -> Facts:
    """Return what GitHub Actions says. The job of a pull request runs on a merge commit; the commit
    is the head's."""
    path = environment.get("GITHUB_EVENT_PATH", "")
    event = parse_event(read_file(path), path) if path else {}

    def of_event(name: str) -> Fact:
        value: Any = event
        for key in name.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        is_text = isinstance(value, (str, int)) and value
        return Fact(str(value), name) if is_text else NO_FACT

    server = environment.get("GITHUB_SERVER_URL") or "https://github.com"
    repository = variable(environment, "GITHUB_REPOSITORY")
    facts = {"default_branch": of_event("repository.default_branch")}
    if repository.value:
        facts["repository"] = Fact(f"{server}/{repository.value}", repository.origin)
    if "pull_request" in event:
        source, target = (
            of_event(f"pull_request.{end}.repo.full_name") for end in ("head", "base")
        )
        is_fork = source.value != target.value
        facts["revision"] = of_event("pull_request.head.sha")
        facts["branch"] = of_event(f"pull_request.head.{'label' if is_fork else 'ref'}")
        facts["base_branch"] = of_event("pull_request.base.ref")
        facts["pull_request"] = of_event("pull_request.number")
    elif "workflow_run" in event:
        source = of_event("workflow_run.head_repository.full_name")
        branch = of_event("workflow_run.head_branch")
        if source.value != of_event("repository.full_name").value:
            branch = fork_branch(source.value.partition("/")[0], branch)
        facts["revision"], facts["branch"] = of_event("workflow_run.head_sha"), branch
    else:
        facts["revision"] = variable(environment, "GITHUB_SHA")
        kind = "tag" if environment.get("GITHUB_REF_TYPE") == "tag" else "branch"
        facts[kind] = variable(environment, "GITHUB_REF_NAME")
    return facts


def parse_event(data: bytes, path: str) -> dict[str, Any]:
    """Return the event that started a job. Raises ``ClientError``."""
    try:
        event = json.loads(data)
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise ClientError(USAGE, f"{path} (GITHUB_EVENT_PATH) is not a JSON object")
    return event


def gitlab_facts(environment: Mapping[str, str]) -> Facts:
    """Return what GitLab CI says. A pipeline for merged results runs on a merge commit; the commit
    is that of the source branch."""
    source, target = (
        environment.get(f"CI_MERGE_REQUEST_{end}PROJECT_PATH", "") for end in ("SOURCE_", "")
    )
    branch = variable(environment, "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_COMMIT_BRANCH")
    if target and source != target:
        branch = fork_branch(source, branch)
    facts = {
        "revision": variable(environment, "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", "CI_COMMIT_SHA"),
        "branch": branch,
        "tag": variable(environment, "CI_COMMIT_TAG"),
        "default_branch": variable(environment, "CI_DEFAULT_BRANCH"),
        "base_branch": variable(environment, "CI_MERGE_REQUEST_TARGET_BRANCH_NAME"),
        "merge_base": variable(environment, "CI_MERGE_REQUEST_DIFF_BASE_SHA"),
        "pull_request": variable(environment, "CI_MERGE_REQUEST_IID"),
        "repository": variable(environment, "CI_MERGE_REQUEST_PROJECT_URL", "CI_PROJECT_URL"),
    }
    if facts["revision"].origin == "CI_COMMIT_SHA":
        facts["revision_at"] = variable(environment, "CI_COMMIT_TIMESTAMP")
        facts["subject"] = variable(environment, "CI_COMMIT_TITLE")
        author = variable(environment, "CI_COMMIT_AUTHOR")
        facts["author"] = Fact(author.value.partition(" <")[0], author.origin)
    return facts


def buildkite_facts(environment: Mapping[str, str]) -> Facts:
    """Return what Buildkite says. Its commit is ``HEAD`` if a build was started without one."""
    branch, commit = (variable(environment, f"BUILDKITE_{end}") for end in ("BRANCH", "COMMIT"))
    request = variable(environment, "BUILDKITE_PULL_REQUEST")
    repository = variable(environment, "BUILDKITE_REPO")
    fork = web_address(environment.get("BUILDKITE_PULL_REQUEST_REPO", ""))
    tag = variable(environment, "BUILDKITE_TAG")
    if fork and fork != web_address(repository.value) and ":" not in branch.value:
        branch = fork_branch(urllib.parse.urlsplit(fork).path.strip("/").partition("/")[0], branch)
    facts = {
        "tag" if tag.value else "branch": tag if tag.value else branch,
        "default_branch": variable(environment, "BUILDKITE_PIPELINE_DEFAULT_BRANCH"),
        "repository": repository,
    }
    if commit.value != "HEAD":
        facts["revision"] = commit
    if request.value not in ("", "false"):
        facts["pull_request"] = request
        facts["base_branch"] = variable(environment, "BUILDKITE_PULL_REQUEST_BASE_BRANCH")
    return facts


def jenkins_facts(environment: Mapping[str, str]) -> Facts:
    """Return what Jenkins says, in a multibranch pipeline or with the Git plugin alone. For a pull
    request that Jenkins merges first, the commit is the head that it fetched."""
    repository = variable(environment, "GIT_URL", "GIT_URL_1")
    facts = {"revision": variable(environment, "GIT_COMMIT"), "repository": repository}
    if environment.get("CHANGE_ID"):
        facts["pull_request"] = variable(environment, "CHANGE_ID")
        facts["base_branch"] = variable(environment, "CHANGE_TARGET")
        branch = variable(environment, "CHANGE_BRANCH", "BRANCH_NAME")
        fork = environment.get("CHANGE_FORK")
        facts["branch"] = fork_branch(fork, branch) if fork else branch
        head = f"origin/{environment.get('BRANCH_NAME', '')}"
        if commit := git("rev-parse", "--verify", "--quiet", f"refs/remotes/{head}"):
            facts["revision"] = Fact(commit, head)
    elif environment.get("TAG_NAME"):
        facts["tag"] = variable(environment, "TAG_NAME")
    else:
        facts["branch"] = variable(environment, "BRANCH_NAME", "GIT_LOCAL_BRANCH")
        remote_branch = variable(environment, "GIT_BRANCH")  # "detached" without a branch
        if facts["branch"] == NO_FACT and "/" in remote_branch.value:
            facts["branch"] = Fact(remote_branch.value.partition("/")[2], remote_branch.origin)
        if environment.get("BRANCH_IS_PRIMARY") == "true":
            facts["default_branch"] = Fact(facts["branch"].value, "BRANCH_IS_PRIMARY")
    return facts


# ---- Git -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Checkout:
    """The Git checkout of the current folder. ``head`` is empty without one, ``problem`` why Git
    cannot read it."""

    head: str = ""
    parents: tuple[str, ...] = ()
    remote: str = ""
    url: str = ""
    is_shallow: bool = False
    problem: str = ""

    def resolve(self, revision: str) -> str:
        """Return the commit with this hash, or beginning of a hash; "" if it is not here."""
        if not self.head or not re.fullmatch(r"[0-9a-f]{7,64}", revision):
            return ""
        commit = git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        return commit if commit.startswith(revision) else ""


def open_checkout() -> Checkout:
    """Return the checkout of the current folder."""
    try:
        command = ["git", "rev-parse", "--verify", "HEAD"]
        answer = subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Checkout(problem=f"not available: {error}")
    if answer.returncode:
        return Checkout(problem=" ".join(answer.stderr.split()))
    # A shallow clone knows the parents of its oldest commits by their hashes.
    header = git("cat-file", "commit", "HEAD").partition("\n\n")[0]
    remotes = git("remote").split()
    remote = "origin" if "origin" in remotes or len(remotes) != 1 else remotes[0]
    return Checkout(
        head=answer.stdout.strip(),
        parents=tuple(re.findall(r"^parent (\w+)$", header, re.MULTILINE)),
        remote=remote if remotes else "",
        url=git("remote", "get-url", remote),
        is_shallow=git("rev-parse", "--is-shallow-repository") == "true",
    )


def git_facts(checkout: Checkout, known: Facts, system: str) -> Facts:
    """Return what Git says about the commit that is ``known``, else about the one checked out."""
    facts: Facts = {}
    revision = known.get("revision", NO_FACT)
    commit = checkout.resolve(revision.value) if revision.value else checkout.head
    if "revision" not in known:
        # Jobs of CI change files, too, such as a version; their commit is what was measured.
        changes = "" if system else git("status", "--porcelain", "--untracked-files=no")
        facts["revision"] = Fact(checkout.head + ("-dirty" if changes else ""), GIT_HEAD)
    if checkout.url:
        facts["repository"] = Fact(web_address(checkout.url), f"git remote {checkout.remote}")
    head = f"refs/remotes/{checkout.remote}/HEAD"
    if default := git("symbolic-ref", "--quiet", head).rpartition(f"{checkout.remote}/")[2]:
        facts["default_branch"] = Fact(default, head.partition("/")[2])
    known = {**facts, **known}
    remedy = FULL_HISTORY.get(system, "git fetch --unshallow")
    if not commit:
        line = f"the checkout has no commit {revision.value[:12]}: {remedy}"
        return {**facts, "revision_at": Fact("", line), "merge_base": Fact("", line)}
    lines = git(*GIT_LOG, "--format=%cI%n%aN%n%s", commit, "--").split("\n")
    for name, value in zip(("revision_at", "author", "subject"), lines):  # noqa: B905 # Python 3.9
        facts[name] = Fact(value[:200], "git log")
    default_branch = known.get("default_branch", NO_FACT)
    if "branch" not in known:
        branch = branch_of(commit, checkout, default_branch.value)
        if branch.value or "tag" not in known:
            facts["branch"] = branch
    branch = {**facts, **known}.get("branch", NO_FACT)
    base = known.get("base_branch", default_branch).value
    if base != branch.value or "pull_request" in known:
        facts["merge_base"] = merge_base(checkout, commit, base, remedy)
    if fork := {**facts, **known}.get("merge_base", NO_FACT).value:
        moment = git(*GIT_LOG, "--format=%cI", checkout.resolve(fork), "--")
        reason = "git log" if moment else f"the checkout has no commit {fork[:12]}: {remedy}"
        facts["merge_base_at"] = Fact(moment, reason)
    return facts


def branch_of(commit: str, checkout: Checkout, default_branch: str) -> Fact:
    """Return the branch that is checked out, else a branch that has the commit: the default branch
    if it is one of several."""
    name = git("symbolic-ref", "--quiet", "--short", "HEAD")
    if name and commit == checkout.head:
        return Fact(name, "git symbolic-ref HEAD")
    folders = ("refs/heads/", f"refs/remotes/{checkout.remote}/")
    refs = git("for-each-ref", f"--contains={commit}", "--format=%(refname)", *folders).split()
    names = sorted({ref.replace(folder, "") for ref in refs for folder in folders if folder in ref})
    names = [name for name in names if name != "HEAD"]
    if names:
        name = default_branch if default_branch in names else names[0]
        others = f", and {len(names) - 1} more have it" if len(names) > 1 else ""
        return Fact(name, f"git for-each-ref --contains{others}")
    if checkout.is_shallow or commit != checkout.head:
        return Fact("", f"no branch here has commit {commit[:12]}: specify --branch")
    return Fact("HEAD", "detached, and no branch has the commit")  # it is not on the trunk


def merge_base(checkout: Checkout, commit: str, base: str, remedy: str) -> Fact:
    """Return the commit at which a commit's history left a branch."""
    if not base:
        return Fact("", "unknown default branch: specify --default-branch")
    if checkout.is_shallow:
        return Fact("", f"shallow clone: {remedy}")
    # A local branch may be behind that of the remote.
    ref = f"refs/remotes/{checkout.remote}/{base}" if checkout.remote else f"refs/heads/{base}"
    name = ref.split("/", 2)[2]
    if not git("rev-parse", "--verify", "--quiet", ref):
        return Fact("", f"no {name} in the checkout: git fetch {checkout.remote} {base}".strip())
    common = git("merge-base", ref, commit)
    if not common:
        return Fact("", f"{name} and {commit[:12]} have no common commit")
    return Fact(common, f"git merge-base {name}")


def git(*arguments: str) -> str:
    """Run Git and return its output; "" if it fails."""
    try:
        answer = subprocess.run(
            ["git", *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""


# ---- requests ------------------------------------------------------------------------------------


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuse redirects, so that the token is sent only to the given address."""

    def redirect_request(self, *_: object) -> None:
        """Return None: the answer is taken as it is."""


def kiln_request(
    options: argparse.Namespace, path: str, query: Mapping[str, Any], body: bytes | None = None
) -> urllib.request.Request:
    """Return a request to Kiln's API, a POST if it has a body. Raises ``ClientError``."""
    url = f"{options.url.rstrip('/')}/api/v1/{path}"
    address = check_scheme(f"{url}?{urllib.parse.urlencode(query)}" if query else url)
    headers = {"Authorization": f"Bearer {read_token(options.token_file)}", **AGENT}
    return urllib.request.Request(address, body, headers)  # noqa: S310


def check_scheme(address: str) -> str:
    """Return the address. Raises ``ClientError`` if it is not one of HTTP."""
    if urllib.parse.urlsplit(address).scheme not in ("http", "https"):
        raise ClientError(USAGE, f"{address}: the URL must begin with http:// or https://")
    return address


def ask_kiln(
    options: argparse.Namespace, request: urllib.request.Request, key: str
) -> dict[str, Any]:
    """Send a request to Kiln and return its answer, which has the ``key``. Raises
    ``ClientError``."""

    def parse(data: bytes) -> dict[str, Any]:
        answer = json.loads(data)
        if not isinstance(answer, dict) or key not in answer:
            raise ValueError("the answer is not from Kiln")  # but from a proxy, say
        return answer

    answer: dict[str, Any] = send(request, options, parse)
    return answer


def send(
    request: urllib.request.Request,
    options: argparse.Namespace,
    parse: Callable[[bytes], Any],
    tries: int | None = None,
) -> Any:
    """Send a request, with retries, and return the parsed answer. Raises ``ClientError``."""
    opener = urllib.request.build_opener(NoRedirects)
    tries = max(1, options.tries if tries is None else tries)
    reason = "not tried"
    for attempt in range(tries):
        wait_s = min(MAX_WAIT_S, 2.0**attempt) * random.uniform(0.5, 1.0)  # noqa: S311
        try:
            with opener.open(request, timeout=options.timeout) as response:
                return parse(response.read())
        except urllib.error.HTTPError as error:
            reason = f"{error.code}: {error_line(error)}"
            if error.code not in TEMPORARY_STATUSES and not is_rate_limit(error):
                status = NO_TOKEN if error.code in (401, 403) else REFUSED
                raise ClientError(status, reason, error.code) from None
            wait_s = retry_after_s(error.headers.get("Retry-After"), wait_s)
        except (OSError, HTTPException, ValueError) as error:  # URLError and timeouts are OSErrors
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        if attempt + 1 < tries:
            print_error(f"{reason}; retrying in {wait_s:.0f} s")
            time.sleep(wait_s)
    raise ClientError(NOT_REACHED, f"not reached in {tries} tries: {reason}")


def is_rate_limit(error: urllib.error.HTTPError) -> bool:
    """Return whether GitHub refused a request for its rate, not for its token. Raises
    ``ClientError`` if the limit is not reset soon."""
    if error.code != 403:
        return False
    reset = error.headers.get("X-RateLimit-Reset", "")
    if error.headers.get("X-RateLimit-Remaining") != "0" or not reset.isdecimal():
        return bool(error.headers.get("Retry-After"))
    wait_s = int(reset) - time.time()
    if wait_s > MAX_WAIT_S:
        line = f"403: rate limit reached; it is reset in {wait_s / 60:.0f} minutes"
        raise ClientError(NOT_REACHED, line)
    return True


def error_line(error: urllib.error.HTTPError) -> str:
    """Return the error's message: Kiln's and GitLab's ``error``, GitHub's and GitLab's
    ``message``."""
    try:
        answer = json.loads(error.read())
        return str(answer.get("error") or answer.get("message") or error.reason)
    except (OSError, ValueError, AttributeError, HTTPException):
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
    if not is_token(token):
        line = "no token: use --token-file or set KILN_TOKEN"
        if os.environ.get("CI"):
            line += " (jobs for pull requests from forks have no secrets)"
        raise ClientError(USAGE, line)
    return token


def is_token(text: str) -> bool:
    """Return whether a text can be a token in a header: an error about another one prints it."""
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def idempotency_key(body: bytes, context: dict[str, Any]) -> str:
    """Return the hash of a batch and its options."""
    digest = hashlib.sha256(json.dumps(context, sort_keys=True).encode())
    digest.update(b"\n" + body)
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
