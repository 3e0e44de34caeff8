"""Where files are in a checkout and in an installed package."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen_app.platform.config import layout


@pytest.fixture
def checkout(tmp_path: Path) -> layout.Layout:
    return layout.layout_of(tmp_path)


@pytest.fixture
def installed(tmp_path: Path) -> layout.Layout:
    (tmp_path / "codegen_app" / "_site").mkdir(parents=True)
    return layout.layout_of(tmp_path)


def test_a_checkout_has_its_data_and_its_pages_beside_the_packages(
    checkout: layout.Layout, tmp_path: Path
) -> None:
    assert (checkout.site, checkout.work) == (tmp_path, tmp_path)
    assert checkout.data("/elsewhere") == tmp_path / "var"
    assert {path.name for path in checkout.own_files()} >= {"templates", "static", "codegen_app"}


def test_a_package_writes_into_its_user_s_folder_of_data(
    installed: layout.Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/user")
    assert installed.data("") == Path("/home/user/.local/share/kiln")
    assert installed.data("relative") == Path("/home/user/.local/share/kiln")
    assert installed.data("/data") == Path("/data/kiln")
    assert installed.site == tmp_path / "codegen_app" / "_site"
    # Nobody's modules are found where processes start.
    assert installed.work == Path("/")
    assert {path.name for path in installed.own_files()} == {"codegen_app", "scheduler"}


def test_this_is_a_checkout() -> None:
    assert layout.layout_of(Path(__file__).resolve().parents[2]) == layout.LAYOUT
    assert not layout.LAYOUT.installed
    assert (layout.LAYOUT.site / "docs" / "glossary.md").is_file()
