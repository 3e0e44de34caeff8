"""Whether the quick tests find stated faults: ``python -m tests.mutants [NUMBER ...] [--jobs N]``.

Each mutant of ``tests/mutants.toml`` is one fault that a user would notice. It is made in memory
(``tests/support/mutating``), so no file is changed, and its tests run with it. One line each:

``found``     a test fails, or ends its process, which passes without the fault;
``SURVIVED``  all of them pass: a test is missing;
``broken``    it says nothing: the text to replace is not in the file exactly once, the tests cannot
              be imported or come to no end, or the test that fails does so without the fault too.

Exit status 1 where fewer than 95% are found.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MUTANTS = Path(__file__).with_name("mutants.toml")
MUTATING = ROOT / "tests" / "support" / "mutating"
ENOUGH = 0.95
FOUND, SURVIVED, BROKEN = "found", "SURVIVED", "broken"
# As of the quick tier; the record of the last run (tests/support/durations.py) stays as it is.
_OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:kiln-record", "--tier", "quick")
_LONGEST_S = 1800
# Exit statuses of a process that a generated kernel brought down.
_CRASHES = tuple(
    -one for one in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT)
)
# Of pytest's summary: the address of a test, or the file that cannot be imported.
_FAILURE = re.compile(
    r"^(?:FAILED|ERROR) (\S+?(?:::[^\[\s]+)*(?:\[.*?\])?)(?: - .*)?$", re.MULTILINE
)
# Of what Python says as it is ended, innermost calls first.
_CRASHED = re.compile(r'File "[^"]*?(tests/[^"]+\.py)", line \d+ in (test_\w+)$', re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """``old`` stands in ``file`` exactly once; with ``new`` in its place ``tests`` must fail."""

    number: int
    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """``why`` is the first test that fails, or what is wrong with the mutant."""

    mutant: Mutant
    word: str
    seconds: float
    why: str = ""

    def __str__(self) -> str:
        why = f": {self.why}" if self.why else ""
        return (
            f"{self.word:8} {self.mutant.number:3} {self.seconds:5.0f} s  {self.mutant.what}{why}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", nargs="*", type=int, help="which mutants; by default all")
    parser.add_argument("--jobs", type=int, default=1, help="how many at the same time")
    options = parser.parse_args()
    mutants = read()
    if unknown := set(options.numbers) - {mutant.number for mutant in mutants}:
        parser.error(f"there is no mutant {min(unknown)}")
    asked = [one for one in mutants if one.number in options.numbers or not options.numbers]
    found = 0
    with ThreadPoolExecutor(max(1, options.jobs)) as pool:
        for done in as_completed([pool.submit(tried, mutant) for mutant in asked]):
            found += done.result().word == FOUND
            print(done.result(), flush=True)  # noqa: T201
    print(f"{found} of {len(asked)} found")  # noqa: T201
    return 0 if found >= ENOUGH * len(asked) else 1


def read() -> list[Mutant]:
    """All mutants, numbered from 1 in their order."""
    rows = tomllib.loads(MUTANTS.read_text(encoding="utf-8"))["mutant"]
    return [
        Mutant(number, **{**row, "tests": tuple(row["tests"])})
        for number, row in enumerate(rows, start=1)
    ]


def tried(mutant: Mutant) -> Outcome:
    """What the mutant's tests say of it."""
    begin = time.monotonic()
    word, why = (BROKEN, why) if (why := obstacle(mutant)) else _with_fault(mutant)
    return Outcome(mutant, word, time.monotonic() - begin, why)


def obstacle(mutant: Mutant) -> str:
    """Why the mutant cannot be made; "" where it can."""
    path = ROOT / mutant.file
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if not mutant.file.endswith(".py") or not text:
        return f"{mutant.file} is no module"
    if (count := text.count(mutant.old)) != 1:
        return f"its text is {count} times in {mutant.file}"
    if mutant.old == mutant.new:
        return "it changes nothing"
    try:
        compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")
    except SyntaxError as error:
        return f"what it makes of {mutant.file} is no Python: {error}"
    return ""


def _with_fault(mutant: Mutant) -> tuple[str, str]:
    status, said = _pytest(mutant.tests, mutant.number)
    if status == pytest.ExitCode.OK:
        return SURVIVED, ""
    first = first_failure(said)
    if status not in (pytest.ExitCode.TESTS_FAILED, *_CRASHES) or "::" not in first:
        last = (said.strip().splitlines() or ["no output"])[-1]
        return BROKEN, f"pytest ended with {status}: {first or last}"
    if _pytest([first])[0] != pytest.ExitCode.OK:
        return BROKEN, f"it fails without the fault too: {first}"
    return FOUND, first


def first_failure(said: str) -> str:
    """The address of the first test in pytest's summary that failed, or of that in which its
    process was ended; "" where there is none."""
    if found := _FAILURE.search(said):
        return found[1]
    crashed = _CRASHED.search(said)
    return f"{crashed[1]}::{crashed[2]}" if crashed else ""


def _pytest(tests: Sequence[str], mutant: int | None = None) -> tuple[int, str]:
    """Exit status and output of a run of these tests, with a mutant's fault in all processes."""
    environment = dict(os.environ)
    if mutant is not None:
        folders = (str(MUTATING), environment.get("PYTHONPATH", ""))
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
        environment["KILN_MUTANT"] = str(mutant)
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *_OPTIONS, *tests],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=_LONGEST_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # so that fixtures end what they started
            said, _ = process.communicate()
            return -signal.SIGINT, f"{said}\nno end after {_LONGEST_S} s"
    return process.returncode, said


if __name__ == "__main__":
    sys.exit(main())
