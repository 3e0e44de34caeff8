"""A file that nobody has checked is read where it can be stopped, and answers in one line."""

from __future__ import annotations

import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from scheduler import pipeline, samples, untrusted
from scheduler.errors import UserError
from scheduler.ir.serialize import graph_to_json
from scheduler.sandbox import rpc
from scheduler.sandbox.process import Cancellation, Cancelled
from scheduler.untrusted import Limits

SAMPLE = samples.path("gpt2_2layer")
# A reader that does what a file made it do, in the real one's sandbox.
READER = """
import os, resource, signal, socket, sys
from contextlib import suppress
def make_handler():
    return handle
def write(data):  # to the original standard output, of any number
    for number in range(3, 10):
        with suppress(OSError):
            os.write(number, data)
def handle(request):
    open(request["file"], "rb").read()
    BODY
"""


def hostile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str) -> None:
    """Have files read by a reader with this body."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "hostile_reader.py").write_text(READER.replace("BODY", body))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    child = replace(untrusted._CHILD, program="hostile_reader:make_handler")
    monkeypatch.setattr(untrusted, "_CHILD", child)


def test_what_is_read_apart_is_what_is_read_here() -> None:
    assert untrusted.read_graph(SAMPLE) == graph_to_json(pipeline.load(SAMPLE))


@pytest.mark.full
def test_a_graph_that_can_be_prepared_passes_and_one_that_cannot_says_why(tmp_path: Path) -> None:
    untrusted.dry_run(SAMPLE, ["gfx942", "cpu"], Limits())
    (tmp_path / "m.pt2").write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"m.pt2: not a torch.export file"):
        untrusted.dry_run(tmp_path / "m.pt2", ["cpu"], Limits())


def test_a_file_that_takes_too_long_is_turned_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"exceeds the time limit of 0.01 s"):
        untrusted.read_graph(SAMPLE, Limits(seconds=0.01))
    limit = "resource.setrlimit(resource.RLIMIT_CPU, (1, 6))"
    hostile(monkeypatch, tmp_path, f"{limit}\n    while True: pass")
    with pytest.raises(UserError, match="exceeds the time limit"):  # by time of the processor
        untrusted.read_graph(SAMPLE, Limits(seconds=3600))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "PermissionError"),  # not even itself
        ("os.abort()", "the reader was killed by SIGABRT"),
        ("os._exit(1)", "the reader exited with status 1"),
        ("open('/etc/passwd')", "PermissionError"),
        ("socket.socket()", "PermissionError"),
        ("os.fork()", "PermissionError"),
        ("open('here', 'w')", "PermissionError"),
        ("bytearray(1 << 31)", "exceeds the memory limit of 1 GiB for a model"),
        ("handle(request)", "nested too deeply"),
        ("write(b'[1]')", "sent an invalid answer"),
        ("while True: write(bytes(1 << 16))", "sent an answer of more than 1 MiB"),
    ],
)
def test_a_reader_that_was_taken_over_gets_nowhere(
    body: str, says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hostile(monkeypatch, tmp_path, body)
    monkeypatch.setattr(rpc, "MAX_JSON_BYTES", 1 << 20)
    with pytest.raises(UserError, match=says):
        untrusted.read_graph(SAMPLE, Limits(memory_bytes=1 << 30))


def test_a_reader_that_closes_its_output_and_stays_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hostile(monkeypatch, tmp_path, "os.closerange(3, 10); signal.pause()")
    with pytest.raises(UserError, match="exceeds the time limit of 3 s"):
        untrusted.read_graph(SAMPLE, Limits(seconds=3))


def test_a_reader_that_never_reads_its_request_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hostile(monkeypatch, tmp_path, "pass")
    sleeps = "import time\ndef make_handler():\n    time.sleep(3600)\n"
    (tmp_path / "modules" / "hostile_reader.py").write_text(sleeps)
    with pytest.raises(UserError, match=r"model\.pt2: exceeds the time limit of 1 s"):
        rpc.call_child(
            *(untrusted._CHILD, "x" * (4 << 20)),  # more than a pipe holds
            name="model.pt2",
            seconds=1,
            memory_bytes=1 << 30,
        )


def test_a_link_is_not_taken_for_an_extracted_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hostile(monkeypatch, tmp_path, "os.symlink('/etc/passwd', request['out'])")
    with pytest.raises(UserError, match="the reader wrote a link"):
        untrusted.extract_model(SAMPLE, "model", tmp_path / "out.pt2")
    assert not (tmp_path / "out.pt2").exists()


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
        untrusted.dry_run(SAMPLE, ["cpu"], Limits(seconds=3600), cancellation)
