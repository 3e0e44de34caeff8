"""Kiln's own wheel: built from the tracked files, and installed where no checkout is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.app.processes import interpreter

ROOT = Path(__file__).resolve().parents[2]
_LEFT = {
    *(".git", ".venv", "var", "dist", "build", "kiln.egg-info", ".hypothesis"),
    *(".mypy_cache", ".ruff_cache", ".pytest_cache", ".import_linter_cache"),
}


def tracked(*folders: str) -> list[str]:
    """What git has in these folders of the checkout, and what is new there and not ignored."""
    listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", *folders]
    command = ["git", "-c", "safe.directory=*", *listing]  # whoever the checkout belongs to
    listed = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if listed.returncode != 0:  # no repository: an unpacked archive has what was tracked
        return _present(folders)
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def _present(folders: Sequence[str]) -> list[str]:
    """All files there, but for what installing and running leave."""
    tops = [ROOT / name for name in folders] if folders else list(ROOT.iterdir())
    kept = [top for top in tops if top.name not in _LEFT]
    found = [top for top in kept if top.is_file()]
    found += [one for top in kept for one in top.rglob("*") if one.is_file()]
    names = (one.relative_to(ROOT) for one in found)
    return [str(name) for name in names if "__pycache__" not in name.parts]


def copied(folder: Path, version: str) -> Path:
    """The tracked files in a folder of their own, as another version."""
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    project = folder / "pyproject.toml"
    before, _, rest = project.read_text().partition('\nversion = "')
    project.write_text(f'{before}\nversion = "{version}"{rest.partition(chr(34))[2]}')
    return folder


def built(source: Path, out: Path, kind: str = "wheel") -> Path:
    """The one wheel or sdist of a folder, made without network."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", out]
    done = subprocess.run(command, cwd=source, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (made,) = out.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


def installed(wheel: Path, folder: Path) -> Path:
    """A virtual environment with the wheel; its folder of programs. What Kiln needs is not
    installed once more: it lies where the tests have it."""
    python = folder / "bin" / "python"
    subprocess.run([interpreter(), "-m", "venv", "--without-pip", folder], check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    subprocess.run([*pip, "install", "--quiet", "--no-index", "--no-deps", wheel], check=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    others = [Path(path).resolve() for path in sys.path if path.endswith("site-packages")]
    (packages / "others.pth").write_text("".join(f"{path}\n" for path in others))
    return python.parent


def environment(home: Path) -> dict[str, str]:
    """Of somebody who has no checkout."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_DATA_HOME": str(home / "data")}
