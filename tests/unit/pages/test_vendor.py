"""What is served of others' code, and what tests run of it, is exactly what they published."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SERVED, TESTED = ROOT / "static" / "vendor", ROOT / "tests" / "vendor"
VENDORS = pytest.mark.parametrize("vendor", [SERVED, TESTED], ids=["served", "tested"])
FOLDERS = sorted(path for vendor in (SERVED, TESTED) for path in vendor.iterdir() if path.is_dir())


def sums(vendor: Path) -> dict[str, str]:
    lines = (vendor / "SHA256SUMS").read_text().splitlines()
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


@VENDORS
def test_every_file_has_its_published_content(vendor: Path) -> None:
    for name, digest in sums(vendor).items():
        assert hashlib.sha256((vendor / name).read_bytes()).hexdigest() == digest, name


@VENDORS
def test_no_file_escapes_the_list(vendor: Path) -> None:
    there = {str(p.relative_to(vendor)) for p in vendor.glob("*/**/*") if p.is_file()}
    assert there == set(sums(vendor))


def test_what_tests_run_is_not_served() -> None:
    assert not {path.name for path in TESTED.iterdir() if path.is_dir()} & {
        path.name for path in SERVED.iterdir()
    }


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_each_library_has_its_licence_and_the_version_that_the_readme_names(folder: Path) -> None:
    assert (folder / "LICENSE").read_text().strip()
    version = (folder / "VERSION").read_text().strip()
    row = next(
        line
        for line in (folder.parent / "README.md").read_text().splitlines()
        if line.startswith(f"| {folder.name} |")
    )
    assert f"| {version} |" in row
