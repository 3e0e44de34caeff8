"""A pull request from its first push to the green check, as CI runs it: the client, Kiln's API, and
a forge."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User

from codegen_app.accounts import tokens
from codegen_app.tracking.models import Revision
from scheduler.clients import kiln_client as client
from tests.support import forge as forges
from tests.support.forge import Forge, forge_server
from tests.support.git_repositories import Repository, leave_ci

pytestmark = pytest.mark.django_db(transaction=True)
PROBLEMS = ("gemm", "softmax", "@team/copy|#1 <b>")
MARKER = "<!-- kiln:kiln -->\n"


class Job:
    """A job of CI in a checkout: it sends measurements of the commit that is checked out, and
    checks it."""

    def __init__(self, folder: Path, url: str, capsys: Any) -> None:
        self.repository = Repository(folder / "checkout")
        self.folder = folder
        self._connection = ["--url", url, "--token-file", str(folder / "token"), "--tries", "2"]
        self._capsys = capsys

    def push(self, ratio: float = 1.0, samples: int = 20, **slower: float) -> None:
        """Send measurements of all problems, ``ratio`` times as long as usual."""
        commit = self.repository.git("rev-parse", "HEAD")
        points = []
        for problem in PROBLEMS:
            draws = np.random.default_rng([samples, *f"{commit}{problem}".encode()])
            values = 1000 * slower.get(problem, ratio) * np.exp(draws.normal(0, 0.002, samples))
            facts = {"driver": "580.95", "toolchain_version": "13.0"}
            points.append(
                {
                    **{"problem": problem, "device": "NVIDIA H200", "metric": "time", "unit": "ns"},
                    **{"value": float(np.median(values)), "samples": values.tolist()},
                    "conditions": {**facts, "code_digest": commit},
                }
            )
        file = self.folder / "results.json"
        file.write_text(json.dumps({"kind": "kiln points", "schema": 1, "points": points}))
        assert client.main(["push", str(file), *self._connection]) == 0, self.errors()

    def run(self, *arguments: str) -> int:
        """Run another command of the client; return its exit status."""
        return client.main([*arguments, *self._connection])

    def errors(self) -> str:
        return str(self._capsys.readouterr().err)


@pytest.fixture
def forge() -> Iterator[Forge]:
    with forge_server() as server:
        yield server


@pytest.fixture
def job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, live_server: Any, settings: Any, capsys: Any
) -> Job:
    leave_ci(monkeypatch, tmp_path)
    settings.SITE_URL = live_server.url
    owner = User.objects.create_superuser("ci")
    (tmp_path / "token").write_text(tokens.create_token(owner, "CI", ["ingest", "read"], None)[1])
    made = Job(tmp_path, live_server.url, capsys)
    monkeypatch.chdir(made.repository.folder)
    return made


def github(job: Job, forge: Forge, monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    """The environment of a job of GitHub Actions for the commit that is checked out."""
    head = job.repository.git("rev-parse", "HEAD")
    branch = job.repository.git("symbolic-ref", "--short", "HEAD")
    forge.commits.add(head)
    repository = {"full_name": "team/app", "default_branch": "main"}
    event: dict[str, Any] = {"repository": repository}
    if branch != "main":
        event["pull_request"] = {
            "number": 12,
            "head": {"sha": head, "ref": branch, "label": f"team:{branch}", "repo": repository},
            "base": {"ref": "main", "repo": repository},
        }
    path = job.folder / "event.json"
    path.write_text(json.dumps(event))
    environment = {
        **{"GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": str(path), "GITHUB_SHA": head},
        **{"GITHUB_REF_NAME": branch, "GITHUB_REF_TYPE": "branch", "GITHUB_TOKEN": token},
        **{"GITHUB_REPOSITORY": "team/app", "GITHUB_API_URL": forge.url},
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def commit(job: Job, forge: Forge, monkeypatch: pytest.MonkeyPatch, subject: str) -> str:
    """Make a commit and let GitHub Actions start a job for it."""
    revision = job.repository.commit(subject)
    github(job, forge, monkeypatch, forges.APP)
    return revision


def trunk(job: Job, forge: Forge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three measured commits of main, from which the branch topic forks."""
    for number in range(3):
        commit(job, forge, monkeypatch, f"main {number}")
        job.push()
    job.repository.git("switch", "-q", "-c", "topic")


def test_a_pull_request_is_red_then_uncertain_then_green(
    job: Job, forge: Forge, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    trunk(job, forge, monkeypatch)
    forge.comment("Looks good", forges.USER)
    forge.comment(f"{MARKER}written by somebody else", forges.USER)

    slow = commit(job, forge, monkeypatch, "Make it slower")
    job.push(1.2, softmax=1.0)
    assert job.run("check") == client.FAILED
    check = forge.checks[-1]
    assert (check["head_sha"], check["conclusion"]) == (slow, "failure")
    assert check["output"]["title"] == "2 slower"
    assert check["details_url"].startswith("http")
    (comment,) = own_comments(forge)
    slowdowns, _, tables = comment.partition("### 2 slower, 1 same")
    assert slowdowns.count("\n1. ") == 2
    assert "1. [`gemm, time" in slowdowns
    assert "[`@team/copy|#1 <b>, time" in slowdowns
    assert "| @\u200bteam/copy\\|#\u200b1 &lt;b&gt;, time" in tables

    commit(job, forge, monkeypatch, "Measure too little")
    job.push(1.0, samples=1)
    assert job.run("check") == client.NOTHING_COMPARED
    assert forge.checks[-1]["conclusion"] == "failure"
    assert "no series could be compared" in job.errors()
    (comment,) = own_comments(forge)
    assert "**Measure these again** (3):" in comment
    capsys.readouterr()
    assert job.run("pending", "--uncertain") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["problem"] for row in rows} == set(PROBLEMS)
    assert {row["revision"] for row in rows} == {job.repository.git("rev-parse", "HEAD")}

    job.push(1.0)
    assert job.run("check") == client.PASSED
    assert forge.checks[-1]["conclusion"] == "success"
    assert forge.checks[-1]["output"]["title"] == "0 slower of 3 compared series"
    (comment,) = own_comments(forge)
    assert "Measure these again" not in comment
    assert [one["body"] for one in forge.comments[:2]] == [
        "Looks good",
        f"{MARKER}written by somebody else",
    ]
    assert len(forge.comments) == 3


def test_one_value_a_commit_is_compared_with_the_trunk(
    job: Job, forge: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trunk's last values are evidence where each commit has one."""
    for number in range(10):
        commit(job, forge, monkeypatch, f"main {number}")
        job.push(samples=1)
    fork = job.repository.git("rev-parse", "HEAD")
    job.repository.git("switch", "-q", "-c", "topic")
    slow = commit(job, forge, monkeypatch, "Make it slower")
    job.push(1.5, samples=1)
    assert job.run("check") == client.FAILED
    assert forge.checks[-1]["output"]["title"] == "3 slower"
    revision = Revision.objects.get(name=slow)
    assert (revision.branch, revision.merge_base, revision.pull_request) == ("topic", fork, "12")
    assert (revision.subject, revision.author) == ("Make it slower", "Ada Lovelace")
    assert revision.repository == "https://github.com/team/app"
    assert not revision.is_trunk
    commit(job, forge, monkeypatch, "Make it as fast as before")
    job.push(samples=1)
    assert job.run("check", "--fail-on", "regression", "--fail-on", "uncertain") == client.PASSED
    assert len(own_comments(forge)) == 1


def test_a_merge_base_that_was_not_measured_is_replaced_by_the_last_one_before_it(
    job: Job, forge: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by the trunk's last revision before the branch's commit, which the branch lacks."""
    trunk(job, forge, monkeypatch)
    job.repository.git("switch", "-q", "main")
    measured = job.repository.git("rev-parse", "HEAD")
    fork = job.repository.commit("not measured")
    commit(job, forge, monkeypatch, "Make the trunk slower")
    job.push(1.5)
    job.repository.git("switch", "-q", "-C", "topic", fork)
    commit(job, forge, monkeypatch, "Change nothing")
    job.push()
    assert job.run("check") == client.PASSED
    assert forge.checks[-1]["output"]["title"] == "0 slower of 3 compared series"
    assert f"`{measured[:12]} (main)`" in own_comments(forge)[0]
    # Two commits that nobody measured have no common history with what was.
    Revision.objects.filter(branch="topic").update(merge_base_at=datetime(2020, 1, 1, tzinfo=UTC))
    assert job.run("check") == client.ERROR
    assert f"no revision of “main” up to the merge base {fork[:12]} was measured" in job.errors()


def own_comments(forge: Forge) -> list[str]:
    return [
        comment["body"]
        for comment in forge.comments
        if comment["body"].startswith(MARKER) and comment["user"]["type"] == "Bot"
    ]


def test_a_report_that_the_forge_refuses_does_not_change_the_status(
    job: Job, forge: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    trunk(job, forge, monkeypatch)
    commit(job, forge, monkeypatch, "Make it slower")
    job.push(1.2)
    job.errors()
    # The token of a fork's pull request.
    monkeypatch.setenv("GITHUB_TOKEN", forges.READ_ONLY)
    assert job.run("check") == client.FAILED
    errors = job.errors()
    for line in ("check not written: 403", "comment not written: 403", "“checks: write”"):
        assert line in errors
    assert "from a fork can only read" in errors
    # No token, and a forge that is away.
    monkeypatch.setenv("GITHUB_TOKEN", "")
    assert job.run("check") == client.FAILED
    assert "GITHUB_TOKEN: ${{ github.token }}" in job.errors()
    monkeypatch.setenv("GITHUB_TOKEN", forges.APP)
    monkeypatch.setattr(client.time, "sleep", lambda _: None)
    monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:9")
    assert job.run("check") == client.FAILED
    assert "check not written: not reached in 2 tries" in job.errors()
    assert forge.checks == forge.comments == []
    # A token that is damaged is not printed; a line end after it is none of it.
    monkeypatch.setenv("GITHUB_API_URL", forge.url)
    monkeypatch.setenv("GITHUB_TOKEN", f"{forges.APP}\nsecret")
    assert job.run("check") == client.FAILED
    errors = job.errors()
    assert "GITHUB_TOKEN is not a token" in errors
    assert "secret" not in errors
    assert forge.checks == forge.comments == []
    monkeypatch.setenv("GITHUB_TOKEN", f"{forges.APP}\n")
    # A rate limit is waited for.
    monkeypatch.setenv("GITHUB_API_URL", forge.url)
    forge.limited = 1
    assert job.run("check") == client.FAILED
    assert "rate limit exceeded; retrying" in job.errors()
    assert len(forge.checks) == len(forge.comments) == 1


def test_a_person_s_token_writes_a_status_and_its_own_comment(
    job: Job, forge: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check runs are for apps only."""
    trunk(job, forge, monkeypatch)
    revision = commit(job, forge, monkeypatch, "Change nothing")
    job.push()
    monkeypatch.setenv("GITHUB_TOKEN", forges.USER)
    for number in range(120):
        forge.comment(f"comment {number}", forges.APP)
    for _ in range(2):
        assert job.run("check", "--name", "kiln h200") == client.PASSED
    assert "writing a commit status instead" in job.errors()
    (status, again) = forge.statuses
    assert status == again
    assert (status["sha"], status["state"]) == (revision, "success")
    assert status["context"] == "kiln h200"
    (comment,) = [one for one in forge.comments if one["user"]["type"] == "User"]
    assert comment["body"].startswith("<!-- kiln:kiln h200 -->\n### kiln h200: 0 slower of 3")


def test_a_merge_request_on_gitlab(job: Job, forge: Forge, monkeypatch: pytest.MonkeyPatch) -> None:
    trunk(job, forge, monkeypatch)
    revision = job.repository.commit("Make it slower")
    forge.commits.add(revision)
    monkeypatch.delenv("GITHUB_ACTIONS")
    monkeypatch.delenv("GITHUB_API_URL")
    environment = {
        **{"GITLAB_CI": "true", "CI_COMMIT_SHA": revision, "CI_DEFAULT_BRANCH": "main"},
        **{"CI_PROJECT_ID": "1", "CI_PIPELINE_ID": "5", "CI_MERGE_REQUEST_IID": "12"},
        **{"CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "topic", "CI_JOB_TOKEN": "job"},
        **{"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "CI_API_V4_URL": forge.url},
        "CI_PROJECT_URL": "https://github.com/team/app",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    job.push(1.2)
    assert job.run("check") == client.FAILED
    assert "CI_JOB_TOKEN can neither set commit statuses nor write notes" in job.errors()
    monkeypatch.setenv("GITLAB_TOKEN", forges.PROJECT)
    for _ in range(2):
        assert job.run("check") == client.FAILED
    (status, _) = forge.statuses
    assert (status["sha"], status["state"], status["name"]) == (revision, "failed", "kiln")
    assert (status["pipeline_id"], status["description"]) == ("5", "3 slower")
    (note,) = forge.comments
    assert note["body"].startswith(f"{MARKER}### kiln: 3 slower")


def test_a_commit_without_another_side_is_an_error(
    job: Job, forge: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(job, forge, monkeypatch, "main")
    job.push()
    assert job.run("check") == client.ERROR
    assert "this commit is on main itself: specify BEFORE" in job.errors()
    job.repository.git("switch", "-q", "-c", "topic")
    commit(job, forge, monkeypatch, "not measured")
    assert job.run("check") == client.ERROR
    assert "after: no measured revision is named" in job.errors()
    with pytest.raises(SystemExit):
        job.run("check", "--name", "a --> b")
    assert forge.requests == []


def test_a_report_counts_the_series_beyond_its_rows() -> None:
    """The rows of a comparison are limited, the largest effects first."""
    row = {"status": "unknown", "name": "gemm", "series": 1, "why": "no samples"}
    answer = {
        "counts": {"slower": 0, "uncertain": 2, "unknown": 1_500},
        **{"rows": [row] * 1_000, "markdown": "", "url": "/compare/revisions?a=b", "compared": 0},
    }
    options = client.make_parser().parse_args(["check", "--url", "https://kiln.example"])
    url = "https://kiln.example/compare/revisions?a=b"
    text = client.report_markdown(answer, client.evaluate(answer, [], False), url, options)
    assert "**Measure these again** (1,502):" in text
    assert f"- [1,492 more]({url})" in text


def test_a_long_report_is_cut_at_a_line_that_says_so() -> None:
    url = "https://kiln.example/compare"
    lines = "\n".join(f"| row {number} |" for number in range(9_000))
    text = client.cut(f"<details><summary>x</summary>\n{lines}", 65_536, url)
    assert len(text) <= 65_536
    assert text.endswith(f"The report is longer than 65,536 characters. [All series]({url})\n")
    assert text.count("</details>") == 1
    assert client.cut("short", 65_536, url) == "short"
