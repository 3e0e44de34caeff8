"""Git repositories for tests of the client, without the user's settings, and environments without a
CI system."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

#: Variables of CI systems begin with these.
CI_PREFIXES = (
    *("GITHUB_", "GITLAB_", "CI", "BUILDKITE", "JENKINS_", "GIT_", "CHANGE_", "BRANCH_", "TAG_"),
    "KILN_TOKEN",
)


def leave_ci(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Run in a folder that is in no Git checkout, without the variables of a CI system."""
    for name in os.environ:
        if name.startswith(CI_PREFIXES):
            monkeypatch.delenv(name)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent))
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, "/dev/null")


class Repository:
    """A Git repository in a folder. Commits are made a day apart."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._days = 0
        folder.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        """Run Git and return its output."""
        date = f"2026-11-{self._days + 1:02}T10:00:00+00:00"
        environment = os.environ | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        who = ["-c", "user.name=Ada Lovelace", "-c", "user.email=ada@example.org"]
        answer = subprocess.run(
            ["git", *who, "-c", "protocol.file.allow=always", *arguments],
            cwd=self.folder,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return answer.stdout.strip()

    def commit(self, subject: str) -> str:
        """Add an empty commit; return its hash."""
        self._days += 1
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")
