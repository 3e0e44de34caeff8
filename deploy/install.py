"""Makes .venv and installs Kiln into it: ``python3 deploy/install.py [--dev] [--torch]``.

Starts with any Python 3.6+, so that one that is too old can be told so; it holds nothing newer.
Does nothing where what is installed fits pyproject.toml already. Packages are installed by uv,
which pip installs first; where pip is told to look (an index of one's own), uv looks too.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

LEAST = (3, 11)
ROOM_NEEDED_BYTES = 3 << 30
ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
STAMP = VENV / "kiln-installed.json"
LOCKS = ("dev", "torch")
UV_NAMES = {"index-url": "UV_DEFAULT_INDEX", "find-links": "UV_FIND_LINKS", "cert": "SSL_CERT_FILE"}


def main():
    """Install unless that is done; one line and status 2 for what is missing."""
    before = installed()
    known = before.get("locks", ()) if before else ()  # a larger set serves all
    locks = [name for name in LOCKS if name in known or "--" + name in sys.argv[1:]]
    if before == wanted(locks):
        return
    check_machine()
    python = str(VENV / "bin" / "python")
    if not Path(python).exists():
        say("creating .venv")
        run([sys.executable, "-m", "venv", str(VENV)], f"no virtual environment in {VENV}")
    say("installing packages; this takes a minute")
    failed = "the packages could not be installed"
    if "torch" in locks:
        failed += " (PyTorch's CPU build: UV_TORCH_BACKEND=cpu, or UV_FIND_LINKS=FOLDER)"
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    run([*pip, "install", "--quiet", "--require-hashes", "--requirement", str(lock("uv"))], failed)
    uv = [str(VENV / "bin" / "uv"), "pip", "install", "--quiet", "--python", python]
    # What was tested, by its hashes; then ourselves, which brings no other package.
    files = [lock("dev" if "dev" in locks else "")]
    files += [lock(name) for name in locks if name != "dev"]
    named = [word for file in files for word in ("--requirement", str(file))]
    run([*uv, "--require-hashes", *named], failed, as_pip_looks(pip))
    run([*uv, "--no-deps", "--editable", "."], failed, as_pip_looks(pip))
    STAMP.write_text(json.dumps(wanted(locks)))


def installed():
    """What the last complete installation was; None where there was none."""
    try:
        return json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return None


def wanted(locks):
    """What the stamp of a complete installation with these extra locks says."""
    files = {name: digest(lock(name)) for name in ("", *locks)}
    packages = digest(ROOT / "pyproject.toml")
    return {"locks": files, "python": sys.version.split()[0], "root": str(ROOT), "own": packages}


def digest(file):
    """SHA-256 of a file's content."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def lock(name):
    """A lock file: every package with its version and hashes (``make lock`` writes it)."""
    return ROOT / "deploy" / (f"requirements-{name}.txt" if name else "requirements.txt")


def as_pip_looks(pip):
    """uv's environment: it looks for packages where pip does, unless it is told itself."""
    done = subprocess.run(
        [*pip, "config", "list"],
        check=False,
        stdout=subprocess.PIPE,
        universal_newlines=True,  # noqa: UP021 - ``text`` is newer
    )
    environ = dict(os.environ)
    for line in done.stdout.splitlines():
        name, _, value = line.partition("=")
        told = UV_NAMES.get(name.rpartition(".")[2])
        if told:
            environ.setdefault(told, value.strip("'\""))
    return environ


def check_machine():
    """One line for what is missing."""
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if sys.version_info < LEAST:
        least = f"{LEAST[0]}.{LEAST[1]}"
        fail(f"Python {least} or newer is needed, {sys.executable} is {here}: set PYTHON=...")
    if not all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")):
        fail(f"Python's venv module is missing: apt-get install python{here}-venv")
    free = shutil.disk_usage(str(ROOT)).free
    if free < ROOM_NEEDED_BYTES:
        fail(f"{ROOT}: {free >> 20} MiB are free, {ROOM_NEEDED_BYTES >> 20} MiB are needed")


def run(command, failed, environ=None):
    """Run a command; where it fails, its own words and then one line."""
    done = subprocess.run(
        command,
        check=False,
        cwd=str(ROOT),
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,  # noqa: UP021 - ``text`` is newer
    )
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        lines = [line for line in done.stdout.splitlines() if line[:5].lower() == "error"]
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
