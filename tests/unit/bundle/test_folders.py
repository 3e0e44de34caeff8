"""Where a bundle is written: in place of an earlier one, and never of anything else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scheduler.bundle import writer
from scheduler.codegen import bundle_paths
from scheduler.errors import UserError
from tests.support.hostile import NAMES

OURS = {"schema": 1, "graph": {"name": "m", "digest": "0" * 64, "symbols": {}}}


def folder_with(path: Path, manifest: object, **files: str) -> Path:
    path.mkdir()
    (path / "manifest.json").write_text(json.dumps(manifest))
    for name, text in files.items():
        (path / name).write_text(text)
    return path


def test_an_earlier_bundle_may_be_replaced(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "b", OURS, wrapper="")
    (folder / "wrapper").rename(folder / "wrapper.py")
    (folder / "kernels").mkdir()
    writer.check_replaceable(folder)


@pytest.mark.parametrize(
    "manifest",
    [
        {"manifest_version": 3, "name": "an extension of a browser"},
        {"schema": 1},
        [],
        "text",
        {"schema": 1, "graph": {"digest": 5}},
    ],
)
def test_a_folder_with_somebody_elses_manifest_stays(manifest: object, tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "other", manifest)
    with pytest.raises(UserError, match="is not empty and not a bundle"):
        writer.check_replaceable(folder)


def test_a_bundle_in_which_somebody_keeps_a_file_stays(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "b", OURS, notes="mine")
    with pytest.raises(UserError, match="notes"):
        writer.check_replaceable(folder)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "b", OURS)
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(UserError, match="link"):
        writer.check_replaceable(tmp_path / "link")


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:24])
def test_a_name_becomes_one_plain_folder_name(name: str, tmp_path: Path) -> None:
    folder = bundle_paths.bundle_folder(name, "0123456789abcdef" * 4)
    assert folder.isascii()
    assert len(folder) <= bundle_paths.MAX_NAME_LENGTH
    assert set(folder) <= set(bundle_paths.SAFE_CHARACTERS)
    assert folder.endswith("-0123456789ab")
    assert not folder.startswith(("-", "_"))
    (tmp_path / folder).mkdir()
    assert [path.name for path in tmp_path.iterdir()] == [folder]


def test_names_that_differ_only_in_what_is_left_out_have_folders_of_their_own() -> None:
    assert bundle_paths.bundle_folder("a/b", "1" * 64) != bundle_paths.bundle_folder(
        "a/b", "2" * 64
    )
    assert bundle_paths.bundle_folder("gpt2 2layer", "1" * 64) == "gpt2_2layer-111111111111"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc", "a\n", "a\x00", "-x", "a.b"])
def test_no_kernel_lies_outside_its_bundle(name: str) -> None:
    with pytest.raises(ValueError, match="not a valid kernel name"):
        bundle_paths.kernel_folder(name)
