"""A release is whole or not there: in repositories of the tests' own, with git and builds."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support import wheels
from tests.unit.test_dependencies import script

BUILT = (
    "codegen_app/platform/config",
    "deploy",
    "static",
    "docs/glossary.md",
    "scheduler/version.py",
)
BESIDE = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "manage.py", ".gitignore")


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script; git knows who commits, and nothing else of this machine's settings."""
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, "/dev/null")
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Kiln")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "kiln@localhost")
    return script("release")


@pytest.fixture
def repository(tmp_path: Path, release: Any) -> Path:
    """What a release needs, as one commit; a part of the packages will do."""
    root = tmp_path / "kiln"
    for name in wheels.tracked(*BUILT, *BESIDE):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(wheels.ROOT / name, root / name)
    for name in ("templates", "deploy/systemd"):
        (root / name).mkdir(exist_ok=True)
        (root / name / "one").write_text("")
    said(
        root, version="0.1.0", changelog="# Changelog\n\n## Unreleased\n\n### Added\n\n- A part.\n"
    )
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Begin")
    return root


def said(root: Path, *, version: str = "", changelog: str = "") -> None:
    """Write what the two files say."""
    if version:
        project = root / "pyproject.toml"
        text = re.sub(r'(?m)^version = ".*"$', f'version = "{version}"', project.read_text())
        project.write_text(text)
    if changelog:
        (root / "CHANGELOG.md").write_text(changelog)


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def state(root: Path) -> tuple[str, ...]:
    """All that a release changes."""
    files = [(root / name).read_text() for name in ("pyproject.toml", "CHANGELOG.md")]
    asked = (("rev-parse", "HEAD"), ("tag", "--list"), ("status", "--porcelain"))
    return (*files, *(git(root, *one) for one in asked))


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


@pytest.mark.full
def test_a_release_is_built_committed_and_tagged(
    repository: Path, release: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    days = {_today()}
    release.release(repository, "0.2.0")
    days.add(_today())
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "describe", "--exact-match") == "v0.2.0"
    assert git(repository, "log", "-1", "--format=%s") == "Release 0.2.0"
    assert git(repository, "show", "--format=", "--name-only") == "CHANGELOG.md\npyproject.toml"
    changelog = (repository / "CHANGELOG.md").read_text()
    begin, end = "# Changelog\n\n## Unreleased\n\n## 0.2.0 - ", "\n\n### Added\n\n- A part.\n"
    assert changelog in {f"{begin}{day}{end}" for day in days}
    dist = repository / "dist"
    names = {"kiln-0.2.0-py3-none-any.whl", "kiln-0.2.0.tar.gz", "kiln-sbom.json"}
    assert {one.name for one in dist.iterdir()} == names | {"SHA256SUMS"}
    sums = dict(reversed(line.split()) for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert sums == {one: hashlib.sha256((dist / one).read_bytes()).hexdigest() for one in names}
    parts = json.loads((dist / "kiln-sbom.json").read_text())
    assert parts["metadata"]["component"]["version"] == "0.2.0"
    assert "git push --atomic origin HEAD v0.2.0" in capsys.readouterr().out

    # Whoever builds the tag gets the same.
    clone = repository.parent / "clone"
    git(repository.parent, "clone", "--quiet", "--branch", "v0.2.0", str(repository), str(clone))
    release.build(clone, repository.parent / "again")
    assert (repository.parent / "again" / "SHA256SUMS").read_text() == (
        dist / "SHA256SUMS"
    ).read_text()

    with pytest.raises(release.RefusedError, match=r"no entries under “## Unreleased”"):
        release.release(repository, "0.3.0")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("next", "'next' is not a version such as 0.2.0"),
        ("v0.2.0", "write the version v0.2.0 as 0.2.0"),
        ("0.0.9", "0.0.9 is not newer than 0.1.0"),
        ("0.1.0rc1", "0.1.0rc1 is not newer than 0.1.0"),
    ],
)
def test_a_version_that_is_none_or_not_newer_is_refused(
    repository: Path, release: Any, given: str, words: str
) -> None:
    before = state(repository)
    with pytest.raises(release.RefusedError, match=f"^{re.escape(words)}$"):
        release.release(repository, given)
    assert state(repository) == before


def test_the_first_release_may_have_the_version_that_is_there(
    repository: Path, release: Any
) -> None:
    assert str(release.checked(repository, "0.1.0")) == "0.1.0"
    git(repository, "tag", "v0.1.0")
    with pytest.raises(release.RefusedError, match=r"the tag v0\.1\.0 already exists"):
        release.checked(repository, "0.1.0")
    git(repository, "tag", "v0.10.0")
    with pytest.raises(release.RefusedError, match=r"0\.9\.0 is not newer than 0\.10\.0"):
        release.checked(repository, "0.9.0")


@pytest.mark.parametrize("name", ["README.md", "codegen_app/platform/config/new.py"])
def test_files_that_no_commit_has_are_named(repository: Path, release: Any, name: str) -> None:
    (repository / name).write_text("changed\n")
    with pytest.raises(
        release.RefusedError, match=f"differ from the last commit: .. {name}|{name}"
    ):
        release.release(repository, "0.2.0")
    assert git(repository, "tag") == ""


@pytest.mark.parametrize(
    ("changelog", "words"),
    [
        ("# Changelog\n\n## 0.1.0\n\n- A part.\n", "one heading “## Unreleased”"),
        ("# Changelog\n\n## Unreleased\n\n### Added\n\n## 0.1.0\n\n- A part.\n", "no entries"),
    ],
)
def test_a_changelog_without_entries_is_refused(
    repository: Path, release: Any, changelog: str, words: str
) -> None:
    said(repository, changelog=changelog)
    git(repository, "commit", "--all", "--quiet", "--message", "Change")
    before = state(repository)
    with pytest.raises(release.RefusedError, match=words):
        release.release(repository, "0.2.0")
    assert state(repository) == before


def broken_build(root: Path) -> None:
    """The version and the heading are written by then, and committed."""
    project = root / "pyproject.toml"
    project.write_text(project.read_text().replace('readme = "README.md"', 'readme = "NONE.md"'))


def broken_parts(root: Path) -> None:
    (root / "static" / "vendor" / "SHA256SUMS").unlink()


def refused_by_a_hook(root: Path) -> None:
    hook = root / ".git" / "hooks" / "commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        '#!/bin/sh\ngrep -q "^Release" "$1" && { echo "not today" >&2; exit 1; }\nexit 0\n'
    )
    hook.chmod(0o755)


def no_place(root: Path) -> None:
    """After the tag: a file lies where the folder is to be."""
    (root / "dist").write_text("")
    (root / ".gitignore").write_text("dist\n")


@pytest.mark.full(but=["broken_build-the build failed: "])
@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (broken_build, "the build failed: "),
        (broken_parts, "the list of parts failed: "),
        (refused_by_a_hook, "git commit failed: not today"),
        (no_place, "dist cannot be written: "),
    ],
)
def test_a_step_that_fails_leaves_everything_as_it_was(
    repository: Path, release: Any, broken: Any, words: str
) -> None:
    broken(repository)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "Break")
    before = state(repository)
    with pytest.raises(release.RefusedError, match=words):
        release.release(repository, "0.2.0")
    assert state(repository) == before
