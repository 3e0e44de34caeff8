"""Makes .venv and installs Kiln into it: ``python3 deploy/install.py [--dev]``.

Starts with any Python 3.6+, so that one that is too old can be told so; it holds nothing newer.
Does nothing where what is installed fits pyproject.toml already.
"""

import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

LEAST = (3, 11)
ROOM_NEEDED_BYTES = 3 << 30
ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
STAMP = VENV / "kiln-installed.json"


def main():
    """Install unless that is done; one line and status 2 for what is missing."""
    dev = "--dev" in sys.argv[1:]
    if installed() in (wanted(True), wanted(dev)):  # the larger set serves both
        return
    check_machine()
    if not (VENV / "bin" / "python").exists():
        say("making .venv")
        run([sys.executable, "-m", "venv", str(VENV)], f"no virtual environment in {VENV}")
    say("installing packages; this takes a minute or two")
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    failed = "the packages could not be installed"
    # What was tested, by its hashes; then ourselves, which brings no other package.
    run([*pip, "install", "--quiet", "--require-hashes", "--requirement", str(lock(dev))], failed)
    run([*pip, "install", "--quiet", "--no-deps", "--editable", "."], failed)
    STAMP.write_text(json.dumps(wanted(dev)))


def installed():
    """What the last complete installation was; None where there was none."""
    try:
        return json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return None


def wanted(dev):
    """What the stamp of a complete installation says."""
    files = (ROOT / "pyproject.toml", lock(dev))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    return {"dev": dev, "python": sys.version.split()[0], "root": str(ROOT), "packages": digest}


def lock(dev):
    """The lock file: every package with its version and hashes (``make lock`` writes it)."""
    return ROOT / "deploy" / ("requirements-dev.txt" if dev else "requirements.txt")


def check_machine():
    """One line for what is missing."""
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if sys.version_info < LEAST:
        least = f"{LEAST[0]}.{LEAST[1]}"
        fail(f"Python {least} or newer is needed, {sys.executable} is {here}: name one, PYTHON=...")
    if not all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")):
        fail(f"Python's venv module is missing: apt-get install python{here}-venv")
    free = shutil.disk_usage(str(ROOT)).free
    if free < ROOM_NEEDED_BYTES:
        fail(f"{ROOT}: {free >> 20} MiB are free, {ROOM_NEEDED_BYTES >> 20} MiB are needed")


def run(command, failed):
    """Run a command; where it fails, its own words and then one line."""
    done = subprocess.run(
        command,
        check=False,
        cwd=str(ROOT),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,  # noqa: UP021 - ``text`` is newer
    )
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        lines = [line for line in done.stdout.splitlines() if line.startswith("ERROR")]
        fail(f"{failed}: {lines[-1] if lines else 'see above'}")


def say(line):
    """Progress, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def fail(line):
    """One line, and out."""
    sys.stderr.write(f"kiln: {line}\n")
    sys.exit(2)


if __name__ == "__main__":
    main()
