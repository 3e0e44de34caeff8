"""A pytest plugin that records what each test costs: wall time, and CPU time by program.

The CPU time of a program is that of its process and of those that it waited for. PostgreSQL, and
programs that nothing waits for before a test ends, such as browsers, are not part of a test's.
``var/tests/durations.json`` has pytest's exit status and every test with how it ended;
``--dearest N`` prints the N dearest at the end.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

RECORD = Path(__file__).resolve().parents[2] / "var" / "tests" / "durations.json"
_KEY = "durations"
_OWN = "this process"
_OTHER = "other processes"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--dearest", type=int, default=0, help="print the N tests that took the most CPU time"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Meter(), "kiln-meter")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Record(config.getoption("dearest")), "kiln-record")


class _Meter:
    """In each test process: attaches to a test's last report what the test took."""

    def __init__(self) -> None:
        self._by_program: Counter[str] = Counter()
        self._began: tuple[float, Counter[str]] = (0.0, Counter())
        _count_programs(self._by_program)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        self._began = time.perf_counter(), self._cpu()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[None]:
        report: Any = yield
        if call.when == "teardown":
            wall, before = self._began
            cpu = self._cpu() - before  # only what is greater than nothing
            spent = {"wall_s": time.perf_counter() - wall, "cpu_s": dict(cpu)}
            report.user_properties.append((_KEY, spent))
        return report

    def _cpu(self) -> Counter[str]:
        """CPU seconds of this process and its children until now, by program."""
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        other = children.ru_utime + children.ru_stime - self._by_program.total()
        own = time.process_time()
        return Counter({**self._by_program, _OWN: own, _OTHER: max(0.0, other)})


class _Record:
    """In the process that pytest was called in: gathers, writes and prints."""

    def __init__(self, dearest: int) -> None:
        self._dearest = dearest
        self._tests: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = self._tests.setdefault(report.nodeid, {"outcome": "", "wall_s": 0.0, "cpu_s": {}})
        test |= dict(report.user_properties).get(_KEY, {})
        if report.failed:  # in any of its parts, or its process died
            lines = report.longreprtext.splitlines()
            said = next((line[1:].strip() for line in lines if line[:2] == "E "), lines[-1:])
            test |= {"outcome": "failed", "said": str(said)}
        elif report.when == "call" or report.skipped:
            test["outcome"] = test["outcome"] or report.outcome

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        RECORD.write_text(json.dumps({"status": exitstatus, "tests": self._tests}, indent=1))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._tests and self._dearest:
            terminalreporter.section(f"{self._dearest} dearest tests, CPU seconds by program")
            for line in table(self._tests, self._dearest):
                terminalreporter.write_line(line)


def table(tests: dict[str, dict[str, Any]], most: int) -> list[str]:
    """The lines of the record: programs, folders, then the dearest tests."""
    programs: Counter[str] = Counter()
    folders: defaultdict[str, list[float]] = defaultdict(list)
    for name, spent in tests.items():
        programs.update(spent["cpu_s"])
        folders[_folder(name)].append(_total(spent))
    lines = [f"{len(tests)} tests, {programs.total():.0f} CPU s"]
    lines += [f"{seconds:8.1f}  {name}" for name, seconds in programs.most_common(12)]
    by_cost = sorted(folders.items(), key=lambda item: -sum(item[1]))
    lines += [f"{sum(each):8.1f}  {name}, {len(each)} tests" for name, each in by_cost]
    dearest = sorted(tests.items(), key=lambda item: -_total(item[1]))[:most]
    for name, spent in dearest:
        shares = Counter(spent["cpu_s"]).most_common(3)
        by = ", ".join(f"{program} {seconds:.1f}" for program, seconds in shares if seconds >= 0.1)
        lines.append(f"{_total(spent):8.1f}  {name} ({spent['wall_s']:.1f} s wall; {by})")
    return lines


def _total(spent: dict[str, Any]) -> float:
    return float(sum(spent["cpu_s"].values()))


def _folder(name: str) -> str:
    parts = name.partition("::")[0].split("/")[1:-1]
    return "/".join(parts[:2])


def _count_programs(seconds: Counter[str]) -> None:
    """Have ``Popen`` wait by ``wait4``, which says what the process took."""

    def try_wait(self: Any, flags: int) -> tuple[int, int]:
        try:
            pid, status, usage = os.wait4(self.pid, flags)
        except ChildProcessError:  # as Popen has it: somebody else has waited
            return self.pid, 0
        if pid == self.pid:
            seconds[_program(self.args)] += usage.ru_utime + usage.ru_stime
        return pid, status

    def poll(self: Any, _deadstate: Any = None, **_: Any) -> int | None:
        if self.returncode is None and self._waitpid_lock.acquire(False):
            try:
                if self.returncode is None:
                    pid, status = self._try_wait(os.WNOHANG)
                    if pid == self.pid:
                        self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode  # type: ignore[no-any-return]

    subprocess.Popen._try_wait = try_wait  # type: ignore[attr-defined]
    subprocess.Popen._internal_poll = poll  # type: ignore[attr-defined]


def _program(command: str | bytes | os.PathLike[str] | Sequence[Any]) -> str:
    """``zig cc``, ``python -m celery``, ``python manage.py demo``."""
    if isinstance(command, str | bytes | os.PathLike):
        return Path(os.fsdecode(command).split()[0]).name
    words = [os.fsdecode(word) for word in command]
    name = Path(words[0]).name
    if name == "zig":
        return f"zig {words[1]}"
    if not name.startswith("python"):
        return name
    rest = [word for word in words[1:] if word not in ("-I", "-B", "-P")]
    if rest[:1] == ["-m"]:
        return f"python -m {rest[1]}"
    if rest[:1] == ["-c"]:
        return "python -c"
    return " ".join(("python", *(Path(word).name for word in rest[:2] if word[:1] != "-")))
