"""The fence says what it is here, does without what is missing, and can be required whole."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler import sandbox
from scheduler.commands.main import main
from scheduler.errors import UserError
from scheduler.sandbox import Limits, Sandbox, landlock, privileges, seccomp
from scheduler.sandbox.model import SYSTEM_LIBRARIES
from scheduler.sandbox.status import FILES, NETWORK, SIGNALS

PROGRAMS = (Path("/bin"), Path("/usr/bin"), *SYSTEM_LIBRARIES)


@pytest.fixture
def asked_anew() -> Iterator[None]:
    """What holds here is found out once; these tests change it."""
    sandbox.sandbox_status.cache_clear()
    yield
    sandbox.sandbox_status.cache_clear()


def no_landlock() -> int:
    raise OSError("Landlock is supported by the kernel but disabled at boot time")


def no_library() -> object:
    raise OSError("Unable to find libseccomp")


def output(*command: str, **parts: object) -> str:
    """What a fenced program writes."""
    own = Sandbox(execute=PROGRAMS, processes=True, **parts)
    with sandbox.start(command, own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        return process.stdout.read().decode()


def test_what_is_missing_is_said_and_the_work_goes_on(
    asked_anew: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(landlock, "version", no_landlock)
    monkeypatch.setattr(seccomp, "library", no_library)
    statement = sandbox.sandbox_status()
    assert [part.name for part in statement.missing] == [FILES, NETWORK, SIGNALS]
    assert "disabled at boot" in statement.missing[0].note
    assert "libseccomp" in statement.missing[1].note
    (tmp_path / "file").write_text("read")
    assert output("cat", str(tmp_path / "file")) == "read"
    with pytest.raises(UserError, match=r"disabled at boot.*libseccomp"):
        sandbox.require()
    assert main(["targets", "--require-fence"]) == 2


def test_one_part_holds_without_the_other(
    asked_anew: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if not landlock.is_available():
        pytest.skip("this machine has no Landlock")
    monkeypatch.setattr(seccomp, "library", no_library)
    (tmp_path / "file").write_text("read")
    assert "Permission denied" in output("cat", str(tmp_path / "file"))
    assert output("cat", str(tmp_path / "file"), read=(tmp_path,)) == "read"


def test_an_old_landlock_holds_for_all_but_compilers(
    asked_anew: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "version", lambda: 1)
    (missing,) = sandbox.sandbox_status().missing
    assert missing.name == FILES
    assert "compilers can read and write all files of this user" in missing.note
    monkeypatch.setattr(landlock, "version", lambda: 2)
    assert sandbox.sandbox_status.__wrapped__().has(FILES)


def test_the_folder_that_may_be_written_is_the_only_one(tmp_path: Path) -> None:
    if not landlock.is_available():
        pytest.skip("this machine has no Landlock")
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    other.mkdir()
    for folder in (own, other):
        output("sh", "-c", f"echo made > {folder}/file", write=(own,))
    assert (own / "file").read_text() == "made\n"
    assert not (other / "file").exists()


def test_limits_hold_from_the_start(tmp_path: Path) -> None:
    limits = Limits(file_bytes=1 << 16, open_files=17, cpu_seconds=9)
    text = output("sh", "-c", "sleep 0.1; ulimit -n; ulimit -t; ulimit -c", limits=limits)
    assert text.split() == ["17", "9", "0"]


def test_no_fenced_program_has_roots_rights() -> None:
    if not privileges.is_root():
        pytest.skip("only root has them")
    rights = dict(line.split(":\t") for line in Path("/proc/self/status").read_text().splitlines())
    text = output("cat", "/proc/self/status", read=(Path("/proc"),))
    kept = dict(line.split(":\t") for line in text.splitlines() if ":\t" in line)
    assert int(rights["CapEff"], 16) != 0
    assert (int(kept["CapEff"], 16), int(kept["CapPrm"], 16), kept["NoNewPrivs"]) == (0, 0, "1")


CONNECT = """import socket, sys
for family, kind in ((socket.AF_INET, socket.SOCK_STREAM), (socket.AF_UNIX, socket.SOCK_STREAM)):
    try:
        with socket.socket(family, kind) as one:
            is_local = family == socket.AF_UNIX
            one.connect(sys.argv[2] if is_local else ("127.0.0.1", int(sys.argv[1])))
        print("connected")
    except OSError as error:
        print(error.strerror)
"""


@pytest.mark.parametrize("network", [False, True])
def test_the_network_is_only_for_those_who_have_it(tmp_path: Path, network: bool) -> None:
    """A local server, such as the database, cannot be reached through its socket file."""
    if sandbox.sandbox_status().missing:
        pytest.skip("the sandbox of this machine is incomplete")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        path = str(tmp_path / "local")
        local.bind(path)
        local.listen()
        python = (Path(sys.base_prefix), Path("/usr"), Path("/lib"), Path("/lib64"))
        command = (sys.executable, "-S", "-c", CONNECT, str(server.getsockname()[1]), path)
        policy = Sandbox(read=(tmp_path,), execute=python, processes=True, network=network)
        with sandbox.start(command, policy, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            answers = process.stdout.read().decode().splitlines()
    denied = "Operation not permitted"
    assert answers == (["connected", denied] if network else [denied, denied])
