"""Commits of alerts from Git mirrors: all of a window, whatever names and texts say."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from codegen_app.tracking.alerting import commits
from codegen_app.tracking.models import Alert
from scheduler.errors import MachineError
from tests.support import team
from tests.support.team import MACHINE, REPOSITORY

COUNT = 44
SUBJECTS = {41: "Change\x1fthe tiles", 42: "é" * 300}


def git(folder: Path, *arguments: str, **environment: str) -> str:
    base = {"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    person = {
        f"GIT_{who}_{what}": "Ada" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    return subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env=base | person | environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


@pytest.fixture(scope="module")
def mirrors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the mirror of a repository of ``COUNT`` commits."""
    folder = tmp_path_factory.mktemp("mirrors")
    mirror = folder / commits.mirror_name(REPOSITORY)
    mirror.mkdir()
    git(mirror, "init", "--bare", "--quiet", "--initial-branch=main")
    begin = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=COUNT + 1)
    stream = []
    for n in range(COUNT):
        moment = int((begin + timedelta(hours=n)).timestamp())
        subject = SUBJECTS.get(n, f"Change {n}").encode()
        stream.append(
            b"commit refs/heads/main\ncommitter Ada Lovelace <ada@example.org> %d +0000\n"
            b"data %d\n%s\n" % (moment, len(subject), subject)
        )
    subprocess.run(
        ["git", "fast-import", "--quiet"],
        cwd=mirror,
        input=b"".join(stream),
        check=True,
    )
    return folder


def revisions(mirrors: Path) -> list[team.RevisionKey]:
    mirror = mirrors / commits.mirror_name(REPOSITORY)
    rows = git(mirror, "log", "--reverse", "--format=%H %cI").splitlines()
    return [
        team.RevisionKey(name, datetime.fromisoformat(at), "main", REPOSITORY)
        for name, _, at in (row.partition(" ") for row in rows)
    ]


@pytest.mark.parametrize(
    ("repository", "name"),
    [
        ("https://github.com/team/kernels.git", "github.com_team_kernels.git"),
        ("git@github.com:team/kernels.git", "github.com_team_kernels.git"),
        ("https://user@forge.example:8443/a/b/", "forge.example_8443_a_b.git"),
        ("../../etc", "etc.git"),
        ("kernels", "kernels.git"),
    ],
)
def test_a_mirror_has_a_safe_name(repository: str, name: str) -> None:
    assert commits.mirror_name(repository) == name


@pytest.mark.django_db
def test_commits_that_nobody_measured_are_listed(
    mirrors: Path, reader: Client, settings: Any
) -> None:
    trunk = revisions(mirrors)
    before = [revision for n, revision in enumerate(trunk) if n < 40 and n != 39]
    points = team.history("gemm", before, 100.0)
    slower = MACHINE.with_code("b")
    after = [replace(trunk[-1], name=f"later {n}", at=trunk[-1].at) for n in range(4)]
    points += team.history("gemm", [trunk[42], trunk[43], *after], 125.0, slower)
    team.push(points)
    assert commits.read_waiting() == 0, "no folder is set"
    settings.GIT_MIRRORS = mirrors
    assert commits.read_waiting() == 1
    assert commits.read_waiting() == 0, "once"
    alert = Alert.objects.get()
    window = reader.get(f"{alert.get_absolute_url()}.json").json()["window"]
    assert (window["n_commits"], window["complete"]) == (4, True)
    listed = [(commit["name"], commit["measured"]) for commit in window["commits"]]
    assert listed == [(trunk[n].name, n == 42) for n in (42, 41, 40, 39)]
    assert {commit["author"] for commit in window["commits"]} == {"Ada Lovelace"}
    assert window["commits"][0]["subject"].startswith("é" * 190)
    assert len(window["commits"][0]["subject"]) <= 200
    assert window["commits"][3]["subject"] == "Change 39"


@pytest.mark.django_db
def test_lists_have_the_commit_its_author_and_its_time(reader: Client) -> None:
    trunk = [replace(row, subject="Use TMA", author="Ada Lovelace") for row in team.commits(60)]
    slower = team.history("gemm", trunk[40:], 125.0, MACHINE.with_code("b"))
    team.push(team.history("gemm", trunk[:40], 100.0) + slower)
    [row] = reader.get("/alerts.json").json()["alerts"]
    assert (row["commit"], row["author"]) == ("Use TMA", "Ada Lovelace")
    page = reader.get("/alerts").content.decode()
    moment = trunk[40].at
    assert moment is not None
    assert f'title="{moment:%Y-%m-%d %H:%M} UTC"' in page, "of the commit, not of its alert"
    assert [text for text in ("Use TMA", "(Ada Lovelace)") if text not in page] == []


@pytest.mark.parametrize(
    "name", ["--output=/tmp/x", "a b", "a..b", "^main", "main@{1}", ":/Change", "a\nb", ""]
)
def test_a_name_is_never_an_option_or_an_expression(mirrors: Path, name: str) -> None:
    mirror = mirrors / commits.mirror_name(REPOSITORY)
    with pytest.raises(MachineError, match="is not the name of a commit, branch or tag"):
        commits.read_commits(mirror, name, "main")


def test_a_revision_that_the_mirror_lacks_is_named(mirrors: Path) -> None:
    mirror = mirrors / commits.mirror_name(REPOSITORY)
    with pytest.raises(MachineError, match=r"github.com_team_kernels.git: .*0123456789abcdef"):
        commits.read_commits(mirror, "0123456789abcdef", "main")


def slower_at(repository: str, trunk: list[team.RevisionKey], problem: str = "gemm") -> None:
    moved = [replace(revision, repository=repository) for revision in trunk]
    slower = team.history(problem, moved[40:], 125.0, MACHINE.with_code("b"))
    team.push(team.history(problem, moved[:40], 100.0) + slower)


@pytest.mark.django_db
def test_repositories_without_a_mirror_do_not_keep_others_waiting(
    mirrors: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.GIT_MIRRORS = mirrors
    monkeypatch.setattr(commits, "MAX_ALERTS", 1)
    trunk = revisions(mirrors)
    slower_at(REPOSITORY, trunk)
    slower_at("https://github.com/team/other", trunk, "conv")
    slower_at("r" * 300, trunk, "softmax")
    assert Alert.objects.count() == 3
    assert commits.read_waiting() == 1


@pytest.mark.django_db
def test_a_commit_of_the_year_10000_has_no_time(
    tmp_path: Path, reader: Client, settings: Any
) -> None:
    settings.GIT_MIRRORS = tmp_path
    mirror = tmp_path / commits.mirror_name(REPOSITORY)
    mirror.mkdir()
    git(mirror, "init", "--bare", "--quiet")
    tree, parent, names = git(mirror, "mktree"), [], []
    for date in ("1700000000 +0000", "253402300800 +0000"):
        name = git(mirror, "commit-tree", tree, *parent, "-m", "x", GIT_COMMITTER_DATE=f"@{date}")
        parent = ["-p", name]
        names.append(name)
    trunk = team.commits(44)
    trunk[39], trunk[40] = (
        replace(trunk[n], name=name) for n, name in zip((39, 40), names, strict=True)
    )
    slower_at(REPOSITORY, trunk)
    assert commits.read_waiting() == 1
    alert = Alert.objects.get()
    window = reader.get(f"{alert.get_absolute_url()}.json").json()["window"]
    assert [(commit["name"], commit["at"]) for commit in window["commits"]] == [(names[1], None)]
    assert reader.get(alert.get_absolute_url()).status_code == 200
