"""Runs what failed last once more, each test alone: ``python -m tests.flaky``, by ``.ci/run``.

A test that passes now failed for another reason than the product: it is written to
``tests/flaky.toml`` with the date and what it said, and refuses nothing. Its cause is to be mended
within a week: an entry that is older fails the suite (tests/unit/test_flaky.py). Exit status 1
where a test fails again.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.durations import RECORD

ROOT = Path(__file__).resolve().parents[1]
FLAKY = Path(__file__).with_name("flaky.toml")
MOST_DAYS = 7
# More than these at once have a common cause, which is looked for and not retried.
MOST_TESTS = 10


def main() -> int:
    record = json.loads(RECORD.read_text())
    tests = record["tests"].items()
    failed = {name: test["said"] for name, test in tests if test["outcome"] == "failed"}
    if record["status"] != pytest.ExitCode.TESTS_FAILED or len(failed) > MOST_TESTS:
        print(f"{len(failed)} tests failed: none is run again")  # noqa: T201
        return 1
    again = {name for name in failed if not passes(name)}
    today = datetime.datetime.now(datetime.UTC).date()
    with FLAKY.open("a") as file:
        for name in sorted(failed.keys() - again):
            file.write(entry(name, today, failed[name]))
    for name in failed:
        print(f"{'failed again' if name in again else 'passes alone'}: {name}")  # noqa: T201
    return 1 if again else 0


def passes(name: str) -> bool:
    """Whether the test passes in a process of its own with nothing beside it."""
    # The record of the run that it failed in stays as it is.
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:kiln-record")
    command = [sys.executable, "-m", "pytest", *options, name]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def entry(name: str, date: datetime.date, said: str) -> str:
    """A test in TOML; JSON's strings are TOML's."""
    return f"[[test]]\nname = {json.dumps(name)}\ndate = {date}\nsaid = {json.dumps(said)}\n\n"


def overdue(today: datetime.date) -> list[str]:
    """Entries that are older than a week."""
    known = tomllib.loads(FLAKY.read_text()).get("test", [])
    return [one["name"] for one in known if (today - one["date"]).days > MOST_DAYS]


if __name__ == "__main__":
    sys.exit(main())
