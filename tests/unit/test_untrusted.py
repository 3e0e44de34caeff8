"""A file that nobody has checked is read where it can be stopped, and answers in one line."""

from __future__ import annotations

import threading
import zipfile
from pathlib import Path

import pytest

from scheduler import pipeline, samples, untrusted
from scheduler.errors import UserError
from scheduler.ir.serialize import graph_to_json
from scheduler.sandbox.process import Cancellation, Cancelled
from scheduler.sandbox.rpc import ChildProgram
from scheduler.untrusted import Limits

SAMPLE = samples.path("gpt2_2layer")
# A reader that does what a file made it do; its fence is the real one's.
READER = """
import os, signal, socket, sys
from pathlib import Path
from scheduler.sandbox import Limits, Sandbox
from scheduler.sandbox.python import enter_python
file = Path(sys.argv[4])
limits = Limits(memory_bytes=int(sys.argv[2]), cpu_seconds=CPU_SECONDS)
enter_python(Sandbox(read=(file,), limits=limits))
file.read_bytes()
BODY
"""


def hostile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str, cpu_seconds: int = 120
) -> None:
    """Have files read by a reader with this body."""
    folder = tmp_path / "modules"
    folder.mkdir()
    text = READER.replace("BODY", body).replace("CPU_SECONDS", str(cpu_seconds))
    (folder / "hostile_reader.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    child = ChildProgram("hostile_reader", "the reader", "be read", "a model")
    monkeypatch.setattr(untrusted, "_CHILD", child)


def test_what_is_read_apart_is_what_is_read_here() -> None:
    assert untrusted.read_graph(SAMPLE) == graph_to_json(pipeline.load(SAMPLE))


@pytest.mark.full
def test_a_graph_that_can_be_prepared_passes_and_one_that_cannot_says_why(tmp_path: Path) -> None:
    untrusted.try_out(SAMPLE, ["gfx942", "cpu"], Limits())
    (tmp_path / "m.pt2").write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"m.pt2: not a torch.export file"):
        untrusted.try_out(tmp_path / "m.pt2", ["cpu"], Limits())


def test_a_file_that_takes_too_long_is_turned_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"exceeds the time limit of 0.01 s"):
        untrusted.read_graph(SAMPLE, Limits(seconds=0.01))
    hostile(monkeypatch, tmp_path, "while True: pass", cpu_seconds=1)
    with pytest.raises(UserError, match="exceeds the time limit"):  # by time of the processor
        untrusted.read_graph(SAMPLE, Limits(seconds=3600))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "exited with status 1"),  # not even itself
        ("os.abort()", "killed by SIGABRT"),
        ("open('/etc/passwd')", "exited with status 1"),
        ("socket.socket()", "exited with status 1"),
        ("os.fork()", "exited with status 1"),
        ("open('here', 'w')", "exited with status 1"),
        ("bytearray(1 << 31)", "exited with status 1"),
    ],
)
def test_a_reader_that_was_taken_over_gets_nowhere(
    body: str, says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hostile(monkeypatch, tmp_path, body)
    with pytest.raises(UserError, match=says):
        untrusted.read_graph(SAMPLE, Limits(memory_bytes=1 << 30))


@pytest.mark.full
def test_what_takes_too_much_memory_is_turned_down(tmp_path: Path) -> None:
    file = tmp_path / "large.pt2"
    with zipfile.ZipFile(file, "w") as archive:  # not compressed: nothing is told by its size
        archive.writestr("large/models/model.json", b'["' + b"x" * (160 << 20) + b'"]')
    with pytest.raises(UserError, match=r"large.pt2: exceeds the memory limit of 0.5 GiB"):
        untrusted.read_graph(file, Limits(memory_bytes=1 << 29))


def test_cancelling_ends_the_reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hostile(monkeypatch, tmp_path, "import time; time.sleep(3600)")
    cancellation = Cancellation()
    threading.Timer(0.3, cancellation.cancel).start()
    with pytest.raises(Cancelled):
        untrusted.try_out(SAMPLE, ["cpu"], Limits(seconds=3600), cancellation)
