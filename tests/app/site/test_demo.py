"""``manage.py demo`` as people run it: it serves, stops, leaves nothing, repeats nothing."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from codegen_app.platform import postgres
from codegen_app.site.demo.processes import descendants
from scheduler import samples
from tests.app.processes import alive, interpreter, owners_of
from tests.support.demos import (
    LIMIT_S,
    ROOT,
    demo,
    empty_folder,
    environment,
    first_line,
)
from tests.support.ports import free_port


@pytest.fixture
def var() -> Iterator[Path]:
    with empty_folder() as folder:
        yield folder


@pytest.fixture
def port() -> int:
    return free_port()


def manage(*arguments: str, var: Path) -> str:
    """A command of the same installation, as the one who runs the tests."""
    return subprocess.run(
        [interpreter(), "manage.py", *arguments],
        cwd=ROOT,
        env=environment(var),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        umask=0o077,
    ).stdout


def owners(var: Path) -> set[int]:
    found = set()
    for folder, _, files in os.walk(var):  # what goes away meanwhile, a compiler's own, is left out
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            with suppress(FileNotFoundError):
                found.add(path.lstat().st_uid)
    return found


def imported(var: Path) -> tuple[int, int]:
    """The demo's own graphs and runs, without what was measured elsewhere."""
    with psycopg.connect(postgres.cluster_for(var).url("kiln")) as connection:
        row = connection.execute(
            "SELECT (SELECT count(*) FROM codegen_app_graph"
            " WHERE name IN ('gpt2_2layer', 'llama_2layer')),"
            " (SELECT count(*) FROM codegen_app_tuningrun run WHERE NOT EXISTS"
            " (SELECT FROM codegen_app_resultimport WHERE run_id = run.id))"
        ).fetchone()
    assert row is not None
    return row


def server_pid(var: Path) -> int:
    return int((postgres.cluster_for(var).data / "postmaster.pid").read_text().split()[0])


@pytest.mark.full
def test_serves_stops_leaves_nothing_and_repeats_nothing(
    var: Path, port: int, tmp_path: Path
) -> None:
    with demo(var, port) as process:
        assert first_line(process) == f"Kiln serves at http://127.0.0.1:{port}/\n"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=LIMIT_S) as page:
            assert page.status == 200
            assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        said = [first_line(process) for _ in range(3)]
        assert re.fullmatch(r"sign in as admin with the password \S{12,} \(shown once\)\n", said[0])
        assert [line.partition(":")[0] for line in said[1:]] == ["gpt2_2layer", "llama_2layer"]
        assert all("instead of" in line for line in said[1:]), "which sizes are small is said"
        started = [*descendants(process.pid), server_pid(var)]
        assert imported(var) == (2, 2)
        model = tmp_path / "tiny.pt2"  # in a folder that only root may enter
        model.write_bytes(samples.path("llama_2layer").read_bytes())
        said_of_it = manage("import_graph", str(model), "--target", "cpu", var=var)
        assert "already imported" in said_of_it
        assert owners_of([process.pid, *started]) == owners(var)
        assert len(owners(var)) == 1
        assert 0 not in owners(var), "whoever starts it"
        with demo(var, free_port()) as second:
            _, errors = second.communicate(timeout=LIMIT_S)
        assert errors == f"CommandError: the demo runs already, as process {process.pid}\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, errors) == (0, "")
    assert len(started) >= 5
    assert [pid for pid in started if alive(pid)] == []

    with demo(var, port) as process:
        assert first_line(process).startswith("Kiln serves at ")
        started = [*descendants(process.pid), server_pid(var)]
        process.send_signal(signal.SIGTERM)
        said_then, errors = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, errors) == (0, "")
    assert said_then == "", "nothing is imported again, no password is made again"
    assert [pid for pid in started if alive(pid)] == []
    postgres.start(postgres.cluster_for(var))
    assert imported(var) == (2, 2)
    assert (var / "secret-key").stat().st_mode & 0o077 == 0


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="another user's database lies in the folder itself")
def test_a_folder_that_is_made_anew_starts_with_a_database_of_its_own(var: Path, port: int) -> None:
    """Also where the demo stays root, since the system user cannot reach the folder."""
    inner = var / "closed" / "var"
    inner.parent.mkdir(mode=0o700)
    databases = []
    try:
        for begins in ("Kiln serves at ", f"{inner} was removed once: "):
            inner.mkdir()
            with demo(inner, port) as process:
                said = first_line(process)
                assert said.startswith(begins)
                if said != f"Kiln serves at http://127.0.0.1:{port}/\n":
                    assert first_line(process).startswith("Kiln serves at ")
                databases.append(postgres.cluster_for(inner).home.parent)
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=LIMIT_S)
            assert process.returncode == 0
            shutil.rmtree(inner)
        assert len(set(databases)) == 2
    finally:
        for folder in databases:
            shutil.rmtree(folder)


@pytest.mark.full
def test_a_port_in_use_is_one_line_and_starts_nothing(var: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        with demo(var, number) as process:
            said, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 1
    assert said == ""
    assert errors.splitlines() == [
        f"CommandError: port {number} is taken: stop what uses it, or give the demo another, such "
        f"as {number + 1}"
    ]
    assert not postgres.cluster_for(var).home.exists()


@pytest.mark.full
def test_what_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with demo(tmp_path / "file" / "var", 9) as process:
        _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 1
    assert len(errors.splitlines()) == 1
    assert "Traceback" not in errors
