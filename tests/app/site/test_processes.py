"""The demo's supervisor: nothing that it started outlives it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.app.processes import alive, wait_until_gone
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[3]

# A program with a child in a session of its own, whose parent has ended: the worst to find.
STUBBORN = "trap '' TERM; (setsid sleep 1000 & setsid sh -c 'sleep 1001 & wait' &) ; sleep 1002"

SCRIPT = f"""
import os, sys, time
from pathlib import Path
from codegen_app.site.demo import processes
from codegen_app.site.demo.processes import Program, Supervisor, descendants
processes._GRACE_S = 0.2
supervisor = Supervisor(Path("/"), Path(sys.argv[1]), dict(os.environ))
supervisor.start(Program("stubborn", ("sh", "-c", {STUBBORN!r})))
while len(descendants(os.getpid())) < 5:
    time.sleep(0.01)
print(*supervisor.pids(), *descendants(os.getpid()), flush=True)
sys.stdin.readline()
supervisor.stop()
print(*descendants(os.getpid()), flush=True)
try:
    print("not collected", os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT))
except ChildProcessError:
    pass
"""


def supervisor(logs: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(logs)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_stopping_leaves_no_process_however_it_hides(tmp_path: Path) -> None:
    with supervisor(tmp_path) as process:
        assert process.stdout is not None
        _, *started = map(int, process.stdout.readline().split())
        assert len(started) >= 5
        assert all(alive(pid) for pid in started)
        left, _ = process.communicate("stop\n", timeout=PATIENCE_S)
    assert left.split() == []
    assert [pid for pid in started if alive(pid)] == []


def test_what_a_killed_supervisor_leaves_is_ended_by_the_next(tmp_path: Path) -> None:
    with supervisor(tmp_path) as process:
        assert process.stdout is not None
        program, *started = map(int, process.stdout.readline().split())
        process.kill()
    wait_until_gone(program)  # it dies with its supervisor
    assert any(alive(pid) for pid in started), "nothing was left behind: this test shows nothing"
    with supervisor(tmp_path) as process:
        assert process.stdout is not None
        _, *again = map(int, process.stdout.readline().split())
        assert set(again).isdisjoint(started)
        for pid in started:
            wait_until_gone(pid)
        process.communicate("stop\n", timeout=PATIENCE_S)
