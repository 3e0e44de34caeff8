"""deploy/systemd: what systemd says of the units, and that their commands do what they say."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codegen_app.workers.models import Worker
from tests.app.platform.test_deployed import PRODUCTION
from tests.app.processes import ROOT, worker_environment
from tests.app.workers.test_real_workers import Workers

UNITS = ROOT / "deploy" / "systemd"
PROGRAMS = Path(sys.executable).parent
WORKERS = {
    "kiln-compile@.service": ("1", "compile-1", ["prepare", "compile"]),
    "kiln-measure@.service": ("cpu-0", "measure-cpu-0", ["measure.cpu"]),
    "kiln-model@.service": ("1", "model-1", ["measure.model"]),
    "kiln-track@.service": ("1", "track-1", ["detect", "notify"]),
}


def text(unit: str) -> str:
    """A unit's, as if Kiln were installed where it is tried."""
    return (
        (UNITS / unit)
        .read_text()
        .replace("/opt/kiln/.venv/bin", str(PROGRAMS))
        .replace("/opt/kiln", str(ROOT))
    )


def commands(unit: str, instance: str = "") -> list[list[str]]:
    """What it executes, as systemd reads it: ``%i``, ``%%`` and ``$$``."""
    lines = [line for line in text(unit).splitlines() if line.startswith("ExecStart=")]
    found = [shlex.split(line.removeprefix("ExecStart=")) for line in lines]
    return [
        [part.replace("%i", instance).replace("%%", "%").replace("$$", "$") for part in command]
        for command in found
    ]


def without_name(command: list[str]) -> list[str]:
    """A worker's, without where its program is and what the worker is called."""
    at = command.index("-n")
    return [Path(command[0]).name, *command[1:at], *command[at + 2 :]]


def test_systemd_takes_every_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze: apt-get install systemd")
    files = []
    for unit in sorted(UNITS.glob("kiln*.*")):
        if unit.suffix not in (".service", ".target"):
            continue
        instance, _, _ = WORKERS.get(unit.name, ("", "", []))
        files.append(tmp_path / unit.name.replace("@.", f"@{instance}."))
        files[-1].write_text(text(unit.name))
    assert len(files) == 7
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *map(str, files)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
    )
    of_kiln = [line for line in done.stderr.splitlines() if "kiln" in line]
    assert (done.returncode, of_kiln) == (0, [])


@pytest.mark.full
@pytest.mark.parametrize("unit", WORKERS)
def test_a_worker_s_command_serves_its_queues_by_its_name(
    unit: str, transactional_db: None, tmp_path: Path
) -> None:
    instance, name, queues = WORKERS[unit]
    (command,) = commands(unit, instance)
    workers = Workers(tmp_path, "database://localhost")
    rows = Worker.objects.filter(name__startswith=f"{name}@")
    try:
        workers.run(command)
        workers.wait(rows.exists, "sign of life")
    finally:
        workers.kill()
    assert rows.get().queues == queues


def test_the_example_of_an_environment_names_what_a_deployment_needs() -> None:
    lines = (UNITS / "kiln.env.example").read_text().splitlines()
    named = {line.partition("=")[0] for line in lines if line and not line.startswith("#")}
    assert set(PRODUCTION) <= named


@pytest.mark.full
def test_pages_and_tables_are_commands_of_this_checkout() -> None:
    (web,) = commands("kiln-web.service")
    done = subprocess.run(
        [*web, "--check-config"],
        check=False,
        cwd=ROOT,
        env={**os.environ, **PRODUCTION},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    names = [command[1:3] for command in commands("kiln-setup.service")]
    assert names == [["manage", "migrate"], ["manage", "collectstatic"]]


def test_a_command_by_hand_has_the_environment_of_the_units(
    transactional_db: None, tmp_path: Path
) -> None:
    """``kiln-manage``: values with blanks, signs and quotes, as systemd reads them."""
    sender = "Kiln Team's <kiln@example.org>"
    here = worker_environment(tmp_path, "")["DATABASE_URL"]
    lines = ["# of the units", "", f"DATABASE_URL={here}", f"KILN_EMAIL_FROM={sender}"]
    (tmp_path / "kiln.env").write_text("\n".join([*lines, f"KILN_VAR={tmp_path}"]))
    script = tmp_path / "kiln-manage"
    kiln = f"{sys.executable} -m codegen_app"
    changed = (UNITS / "kiln-manage").read_text().replace(".venv/bin/kiln", kiln)
    changed = changed.replace("/opt/kiln", str(ROOT)).replace("/etc/kiln", str(tmp_path))
    if os.geteuid() == 0:
        changed = changed.replace("runuser -u kiln --", "runuser -u root --")
    else:
        changed = changed.replace("runuser -u kiln --", "env")
    script.write_text(changed)
    asked = "from django.conf import settings as s; print(s.DEFAULT_FROM_EMAIL, s.VAR_DIR)"
    done = subprocess.run(
        ["sh", script, "shell", "--no-imports", "--command", asked],
        check=False,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, f"{sender} {tmp_path}\n"), done.stderr


def test_what_the_readme_says_to_type_is_there() -> None:
    text = (ROOT / "deploy" / "README.md").read_text()
    named = set(re.findall(r"(?<![\w./])deploy/[\w./*@-]*[\w*]", text)) - {"deploy/.env"}
    assert len(named) > 5
    # "deploy/kiln-web" is what kubectl calls a Deployment
    missing = [one for one in named if not list(ROOT.glob(one)) and "deploy/kiln" not in one]
    assert missing == []
    units = {one.name.partition("@")[0].removesuffix(".service") for one in UNITS.glob("*.service")}
    enabled = " ".join(re.findall(r"^    systemctl enable .*", text, re.M))
    assert {one for one in units if one not in enabled} == {"kiln-setup"}, "which the pages require"
