"""What is served of others' code is exactly what they published."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

VENDOR = Path(__file__).resolve().parents[3] / "static" / "vendor"
FOLDERS = sorted(path for path in VENDOR.iterdir() if path.is_dir())


def sums() -> dict[str, str]:
    lines = (VENDOR / "SHA256SUMS").read_text().splitlines()
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def test_every_file_has_its_published_content() -> None:
    for name, digest in sums().items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name


def test_no_file_escapes_the_list() -> None:
    there = {str(p.relative_to(VENDOR)) for p in VENDOR.glob("*/**/*") if p.is_file()}
    assert there == set(sums())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_each_library_has_its_licence_and_the_version_that_the_readme_names(folder: Path) -> None:
    assert (folder / "LICENSE").read_text().strip()
    version = (folder / "VERSION").read_text().strip()
    row = next(
        line
        for line in (VENDOR / "README.md").read_text().splitlines()
        if line.startswith(f"| {folder.name} |")
    )
    assert f"| {version} |" in row
