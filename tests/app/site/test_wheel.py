"""Kiln as a wheel: whole, the same each time, and at work where no checkout is."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from codegen_app.platform import postgres
from codegen_app.site.demo.processes import descendants
from tests.app.processes import alive, owners_of
from tests.support import wheels
from tests.support.demos import LIMIT_S, empty_folder, first_line, started
from tests.support.ports import free_port

VERSION = "9.8.7"
SITE = "codegen_app/_site"
CARRIED = {
    "templates": f"{SITE}/templates",
    "static": f"{SITE}/static",
    "docs": f"{SITE}/docs",
    "deploy/systemd": f"kiln-{VERSION}.data/data/share/kiln/systemd",
}


@dataclass(frozen=True)
class Somewhere:
    """A folder without a checkout, Kiln's programs in it."""

    home: Path
    source: Path
    wheel: Path
    programs: Path

    def kiln(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.programs / "kiln", *arguments],
            check=False,
            cwd=self.home,
            env=wheels.environment(self.home),
            capture_output=True,
            text=True,
        )


@pytest.fixture(scope="module")
def somewhere() -> Iterator[Somewhere]:
    with empty_folder() as home:
        source = wheels.copied(home / "source", VERSION)
        wheel = wheels.built(source, home / "dist")
        sdist = wheels.built(source, home / "dist", "sdist")
        # What is built from is gone when the wheel is used.
        shutil.rmtree(source)
        with tarfile.open(sdist) as archive:
            archive.extractall(home)  # our own; Debian's 3.11 knows no filter yet
        yield Somewhere(home, home / f"kiln-{VERSION}", wheel, wheels.installed(wheel, home / "v"))


@pytest.mark.full
def test_the_wheel_has_every_tracked_file_and_no_other(somewhere: Somewhere) -> None:
    wanted = set(wheels.tracked("scheduler", "codegen_app"))
    for folder, place in CARRIED.items():
        named = ["docs/glossary.md"] if folder == "docs" else wheels.tracked(folder)
        wanted |= {place + name.removeprefix(folder) for name in named}
    with zipfile.ZipFile(somewhere.wheel) as archive:
        names = set(archive.namelist())
    assert {name for name in names if ".dist-info/" not in name} == wanted
    assert len(wanted) > 1000


def test_the_sdist_makes_the_same_wheel_to_the_byte(somewhere: Somewhere, tmp_path: Path) -> None:
    """From other files, at another time: builds are reproducible."""
    again = wheels.built(somewhere.source, tmp_path)
    assert again.name == somewhere.wheel.name
    assert again.read_bytes() == somewhere.wheel.read_bytes()


@pytest.mark.full
def test_the_command_says_its_version_and_its_commands(somewhere: Somewhere) -> None:
    assert somewhere.kiln("--version").stdout == f"kiln {VERSION}\n"
    said = somewhere.kiln("--help").stdout
    for name in ("demo", "manage", "worker", "engine"):
        assert f"\n    {name} " in said
    unknown = somewhere.kiln("nothing")
    assert unknown.returncode == 2
    assert "invalid choice: 'nothing'" in unknown.stderr.splitlines()[-1]
    assert (
        "usage: kiln manage import_graph" in somewhere.kiln("manage", "import_graph", "-h").stdout
    )


def test_a_worker_without_a_token_is_told_so_in_one_line(somewhere: Somewhere) -> None:
    done = somewhere.kiln("worker", "join", "https://kiln.example")
    assert done.returncode == 2
    assert re.fullmatch(r"kiln: no valid token: .*\n", done.stderr)


def test_the_engine_is_there_with_its_samples(somewhere: Somewhere) -> None:
    (model,) = somewhere.home.glob("v/lib/*/site-packages/scheduler/samples/graphs/gpt2_2layer*")
    done = somewhere.kiln("engine", "lower", str(model))
    assert (done.returncode, done.stderr) == (0, "")
    assert "m.transformer.h.0.attn.c_attn" in done.stdout


def test_a_user_without_a_home_is_told_what_to_name(somewhere: Somewhere) -> None:
    done = subprocess.run(
        [somewhere.programs / "python", "-c", HOMELESS],
        check=False,
        cwd=somewhere.home,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert done.stderr == "kiln: KILN_VAR is not set, and this user has no home: set it\n"
    assert done.returncode == 1


HOMELESS = """
import pathlib, sys
def home(cls):
    raise RuntimeError("Could not determine home directory.")
pathlib.Path.home = classmethod(home)
from codegen_app.platform.command_line import main
sys.exit(main(["manage", "check"]))
"""


@pytest.mark.long
def test_the_demo_serves_its_pages_and_ends(somewhere: Somewhere) -> None:
    var, port = somewhere.home / "data" / "kiln", free_port()
    address = f"http://127.0.0.1:{port}"
    command = [somewhere.programs / "kiln", "demo", "--port", str(port)]

    def text(path: str) -> str:
        with urllib.request.urlopen(address + path, timeout=LIMIT_S) as page:
            assert page.status == 200
            return str(page.read().decode())

    try:
        with started(command, somewhere.home, wheels.environment(somewhere.home)) as process:
            assert first_line(process) == f"Kiln serves at {address}/\n"
            assert first_line(process).startswith("sign in as admin with the password ")
            (sheet,) = re.findall(r'href="(/static/css/web/tokens\.[0-9a-f]{12}\.css)"', text("/"))
            assert text(sheet) == (somewhere.source / "static/css/web/tokens.css").read_text()
            assert f"Kiln {VERSION}, generator" in text("/devices")
            assert "<h1>Glossary</h1>" in text("/glossary")
            # A model of the package, read by a process behind the fence.
            assert first_line(process).startswith("gpt2_2layer: ")
            ours = [process.pid, *descendants(process.pid)]
            users = owners_of(ours)
            assert users == {var.stat().st_uid}
            assert 0 not in users, "whoever starts it"
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=LIMIT_S)
        assert (process.returncode, errors) == (0, "")
        assert [pid for pid in ours if alive(pid)] == []
        packages = next(somewhere.home.glob("v/lib/*/site-packages"))
        assert not (packages / "var").exists()
    finally:
        postgres.remove(var)
