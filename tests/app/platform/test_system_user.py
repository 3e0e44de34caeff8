"""What root starts: done as a system user, or one line says why not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codegen_app.platform import system_user
from codegen_app.site.demo import preparation

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")


@pytest.fixture(autouse=True)
def _user() -> None:
    system_user.ensure()


def test_a_folder_closed_to_the_user_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "checkout").mkdir(parents=True)
    closed.chmod(0o700)
    assert system_user.first_inaccessible([Path("/usr/bin/env")]) is None
    named = system_user.first_inaccessible([closed / "checkout"])
    assert named in {closed, *closed.parents}, "pytest's own folders may be closed as well"


def test_the_demo_stays_root_where_the_user_cannot_work_and_says_why(
    tmp_path: Path, settings: pytest.FixtureRequest
) -> None:
    settings.BASE_DIR = tmp_path / "closed"
    (settings.BASE_DIR / "codegen_app").mkdir(parents=True)
    settings.BASE_DIR.chmod(0o700)
    settings.ROOT_BECAUSE = preparation._access_problem(tmp_path)
    assert settings.ROOT_BECAUSE.endswith("is closed to the user kiln-postgres")
    assert system_user.describe_user() == (
        f"Everything but PostgreSQL runs as root: {settings.ROOT_BECAUSE}."
    )


def test_what_is_given_ends_at_the_folder(tmp_path: Path) -> None:
    """Neither through a link nor through a second name does a file elsewhere change hands."""
    var, elsewhere = tmp_path / "var", tmp_path / "elsewhere"
    (var / "artifacts").mkdir(parents=True)
    (var / "artifacts" / "own").write_text("")
    elsewhere.write_text("")
    (var / "link").symlink_to(elsewhere)
    (var / "second name").hardlink_to(elsewhere)
    system_user.chown_tree(var)
    assert (var / "artifacts" / "own").stat().st_uid == system_user.uid()
    assert elsewhere.stat().st_uid == 0


def test_a_command_writes_as_the_user_and_reads_as_root(tmp_path: Path) -> None:
    """In a process of its own: there is no way back to root."""
    var, secret = tmp_path / "var", tmp_path / "secret"
    var.mkdir()
    secret.write_text("model")
    secret.chmod(0o600)
    system_user.chown_tree(var)
    child = os.fork()
    if child == 0:
        try:
            system_user.become_owner(var)
            (var / "made").write_text(secret.read_text())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    made = (var / "made").stat()
    assert (made.st_uid, (var / "made").read_text()) == (system_user.uid(), "model")
