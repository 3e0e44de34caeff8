"""The commit, branch, merge base, pull request and repository of a job, by its CI system."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scheduler.clients import kiln_client as client
from tests.support.git_repositories import Repository

ADDRESS = "https://forge.example/team/app"


@dataclass(frozen=True)
class Clone:
    """A clone with a topic branch of two commits, which forked from main's second of four."""

    remote: Repository
    local: Repository
    main: list[str]
    topic: list[str]


def clone(folder: Path, *options: str) -> Clone:
    remote = Repository(folder / "remote")
    main = [remote.commit("main 1"), remote.commit("main 2")]
    remote.git("switch", "-q", "-c", "topic")
    topic = [remote.commit("topic 1"), remote.commit("topic 2")]
    remote.git("switch", "-q", "main")
    main += [remote.commit("main 3"), remote.commit("main 4")]
    local = Repository(folder / "local")
    local.git("remote", "add", "origin", f"file://{remote.folder}")
    local.git("fetch", "-q", *options, "origin")
    local.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    local.git("remote", "set-url", "origin", f"{ADDRESS}.git")
    return Clone(remote, local, main, topic)


@pytest.fixture
def cloned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    made = clone(tmp_path)
    made.local.git("checkout", "-q", "origin/topic")
    monkeypatch.chdir(made.local.folder)
    return made


def values(environment: dict[str, str], **explicit: str) -> dict[str, str]:
    facts = client.find_facts(environment, explicit)
    return {name: fact.value for name, fact in facts.items() if fact.value}


def event(folder: Path, content: dict[str, Any]) -> str:
    path = folder / "event.json"
    path.write_text(json.dumps(content))
    return str(path)


def github(folder: Path, content: dict[str, Any], **more: str) -> dict[str, str]:
    repository = {"full_name": "team/app", "default_branch": "main"}
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_PATH": event(folder, {"repository": repository, **content}),
        "GITHUB_REPOSITORY": "team/app",
        "GITHUB_SERVER_URL": "https://forge.example",
        **more,
    }


def pull_request(head: str, source: str = "team/app", branch: str = "topic") -> dict[str, Any]:
    """The payload of a pull request's event, without what the client does not read."""
    owner = source.partition("/")[0]
    repository = {"full_name": source} if source else None
    return {
        "number": 12,
        "head": {"sha": head, "ref": branch, "label": f"{owner}:{branch}", "repo": repository},
        "base": {"sha": "0" * 40, "ref": "main", "repo": {"full_name": "team/app"}},
    }


def test_a_pull_request_on_github_is_measured_at_its_head(
    cloned: Clone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = cloned.topic[-1]
    cloned.local.git("checkout", "-q", "origin/main")
    cloned.local.git("merge", "-q", "--no-ff", "-m", "Merge", head)
    environment = github(
        tmp_path,
        {"pull_request": pull_request(head)},
        GITHUB_SHA=cloned.local.git("rev-parse", "HEAD"),
        GITHUB_REF_NAME="12/merge",
        GITHUB_REF_TYPE="branch",
        GITHUB_HEAD_REF="topic",
    )
    facts = client.find_facts(environment, {})
    assert {name: fact.value for name, fact in facts.items()} == {
        "revision": head,
        "revision_at": "2026-11-05T10:00:00+00:00",
        "branch": "topic",
        "base_branch": "main",
        "default_branch": "main",
        "merge_base": cloned.main[1],
        "merge_base_at": "2026-11-03T10:00:00+00:00",
        "pull_request": "12",
        "repository": ADDRESS,
        "subject": "topic 2",
        "author": "Ada Lovelace",
    }
    client.print_facts(facts)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"kiln_client: commit {head[:12]} (pull_request.head.sha), commit time")
    assert f"merge base {cloned.main[1][:12]} (git merge-base origin/main)" in line
    assert "pull request 12 (pull_request.number)" in line
    assert f"repository {ADDRESS} (GITHUB_REPOSITORY)" in line


@pytest.mark.parametrize("source", ["ann/app", ""])
def test_a_branch_of_a_fork_is_not_a_branch_of_the_repository(source: str, tmp_path: Path) -> None:
    """Its name may be main. A deleted fork has no name."""
    payload = pull_request("a" * 40, source, "main")
    payload["head"]["label"] = "ann:main"
    found = values(github(tmp_path, {"pull_request": payload}))
    assert (found["revision"], found["branch"]) == ("a" * 40, "ann:main")
    run = {
        "head_sha": "b" * 40,
        "head_branch": "main",
        "head_repository": {"full_name": "ann/app"},
    }
    found = values(github(tmp_path, {"workflow_run": run}, GITHUB_SHA="c" * 40))
    assert (found["revision"], found["branch"]) == ("b" * 40, "ann:main")
    gitlab = {
        "GITLAB_CI": "true",
        "CI_COMMIT_SHA": "a" * 40,
        "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "main",
        "CI_MERGE_REQUEST_SOURCE_PROJECT_PATH": "ann/app",
        "CI_MERGE_REQUEST_PROJECT_PATH": "team/app",
        "CI_MERGE_REQUEST_PROJECT_URL": ADDRESS,
        "CI_PROJECT_URL": "https://forge.example/ann/app",
    }
    found = values(gitlab)
    assert (found["branch"], found["repository"]) == ("ann/app:main", ADDRESS)
    buildkite = {
        "BUILDKITE": "true",
        "BUILDKITE_COMMIT": "a" * 40,
        "BUILDKITE_BRANCH": "main",
        "BUILDKITE_PULL_REQUEST": "3",
        "BUILDKITE_PULL_REQUEST_REPO": "git://forge.example/ann/app.git",
        "BUILDKITE_REPO": "git@forge.example:team/app.git",
    }
    assert values(buildkite)["branch"] == "ann:main"
    jenkins = {
        "JENKINS_URL": "https://jenkins.example/",
        "GIT_COMMIT": "a" * 40,
        "BRANCH_NAME": "PR-3",
        "CHANGE_ID": "3",
        "CHANGE_BRANCH": "main",
        "CHANGE_FORK": "ann",
    }
    assert values(jenkins)["branch"] == "ann:main"


def test_a_push_and_a_tag_on_github(
    cloned: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    push = {"GITHUB_SHA": cloned.topic[1], "GITHUB_REF_NAME": "topic", "GITHUB_REF_TYPE": "branch"}
    found = values(github(tmp_path, {}, **push))
    assert (found["branch"], found["merge_base"]) == ("topic", cloned.main[1])
    assert "pull_request" not in found
    # A tag is of the branch that has it; a point without a branch would be one of the trunk.
    tag = {**push, "GITHUB_REF_NAME": "v1.4", "GITHUB_REF_TYPE": "tag"}
    assert values(github(tmp_path, {}, **tag))["branch"] == "topic"
    monkeypatch.chdir(tmp_path)
    assert values(github(tmp_path, {}, **tag))["branch"] == "tags/v1.4"
    monkeypatch.chdir(cloned.local.folder)
    cloned.local.git("checkout", "-q", "origin/main")
    on_main = {**tag, "GITHUB_SHA": cloned.main[-1]}
    assert values(github(tmp_path, {}, **on_main))["branch"] == "main"
    on_main = {**push, "GITHUB_SHA": cloned.main[-1], "GITHUB_REF_NAME": "main"}
    assert "merge_base" not in client.find_facts(github(tmp_path, {}, **on_main), {})


def test_a_shallow_clone_says_how_to_get_a_merge_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = clone(tmp_path, "--depth", "1")
    made.local.git("checkout", "-q", "origin/topic")
    monkeypatch.chdir(made.local.folder)
    push = {"GITHUB_SHA": made.topic[1], "GITHUB_REF_NAME": "topic", "GITHUB_REF_TYPE": "branch"}
    facts = client.find_facts(github(tmp_path, {}, **push), {})
    assert facts["merge_base"].value == ""
    assert "fetch-depth: 0" in facts["merge_base"].origin
    # GitHub's merge commit alone: the head is known by its hash only.
    made.local.git("checkout", "-q", "origin/main")
    environment = github(tmp_path, {"pull_request": pull_request("a" * 40)})
    facts = client.find_facts(environment, {})
    assert facts["revision"].value == "a" * 40
    for name in ("revision_at", "merge_base"):
        assert facts[name].value == ""
        assert "fetch-depth: 0" in facts[name].origin


def test_a_commit_that_is_not_checked_out_is_an_error(cloned: Clone, tmp_path: Path) -> None:
    """A job that checks out another commit, to measure it again, states it."""
    environment = github(
        tmp_path, {}, GITHUB_SHA=cloned.main[3], GITHUB_REF_NAME="main", GITHUB_REF_TYPE="branch"
    )
    with pytest.raises(client.ClientError, match="is not the one that is checked out"):
        client.find_facts(environment, {})
    found = values(environment, revision=cloned.topic[1])
    assert found["revision_at"] == "2026-11-05T10:00:00+00:00"
    assert (found["subject"], found["repository"]) == ("topic 2", ADDRESS)
    assert (found["branch"], found["merge_base"]) == ("topic", cloned.main[1])
    # That of the job may be stated although another one is checked out.
    assert values(environment, revision=cloned.main[3])["branch"] == "main"
    # The checkout of another repository says nothing about the commit.
    cloned.local.git("remote", "set-url", "origin", "https://forge.example/team/benchmarks")
    unknown = values({**environment, "GITHUB_SHA": "a" * 40})
    assert unknown == {
        "revision": "a" * 40,
        "branch": "main",
        "default_branch": "main",
        "repository": ADDRESS,
    }


def test_a_version_that_is_no_commit_has_no_other_values(cloned: Clone) -> None:
    """The measured library may not be what is checked out."""
    cloned.local.git("tag", "2.6.0")
    assert values({}, revision="2.6.0", branch="release") == {
        "revision": "2.6.0",
        "branch": "release",
    }


def test_a_merge_request_on_gitlab(cloned: Clone) -> None:
    environment = {
        "GITLAB_CI": "true",
        "CI_COMMIT_SHA": cloned.topic[1],
        "CI_COMMIT_TIMESTAMP": "2026-11-05T10:00:00+00:00",
        "CI_COMMIT_TITLE": "topic 2",
        "CI_COMMIT_AUTHOR": "Ada Lovelace <ada@example.org>",
        "CI_DEFAULT_BRANCH": "main",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "topic",
        "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": "",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": cloned.main[1],
        "CI_MERGE_REQUEST_SOURCE_PROJECT_PATH": "team/app",
        "CI_MERGE_REQUEST_PROJECT_PATH": "team/app",
        "CI_MERGE_REQUEST_PROJECT_URL": ADDRESS,
        "CI_PROJECT_URL": ADDRESS,
    }
    usual = values(environment)
    assert usual == {
        "revision": cloned.topic[1],
        "revision_at": "2026-11-05T10:00:00+00:00",
        "branch": "topic",
        "base_branch": "main",
        "default_branch": "main",
        "merge_base": cloned.main[1],
        "merge_base_at": "2026-11-03T10:00:00+00:00",
        "pull_request": "7",
        "repository": ADDRESS,
        "subject": "topic 2",
        "author": "Ada Lovelace",
    }
    # A shallow clone lacks the merge base that GitLab states.
    facts = client.find_facts({**environment, "CI_MERGE_REQUEST_DIFF_BASE_SHA": "a" * 40}, {})
    assert facts["merge_base"].value == "a" * 40
    assert facts["merge_base_at"].value == ""
    assert "GIT_DEPTH: 0" in facts["merge_base_at"].origin
    # A pipeline for merged results: the merge is GitLab's, the values are those of the head.
    cloned.local.git("checkout", "-q", "origin/main")
    cloned.local.git("merge", "-q", "--no-ff", "-m", "Merge", cloned.topic[1])
    merged = {
        "CI_COMMIT_SHA": cloned.local.git("rev-parse", "HEAD"),
        "CI_COMMIT_TITLE": "Merge",
        "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": cloned.topic[1],
    }
    assert values({**environment, **merged}) == usual


def test_jenkins_with_and_without_multibranch_pipelines(cloned: Clone) -> None:
    commit = cloned.topic[1]
    plain = {
        "JENKINS_URL": "https://jenkins.example/",
        "GIT_COMMIT": commit,
        "GIT_BRANCH": "origin/topic",
        "GIT_URL": "ssh://git@forge.example:2222/team/app.git",
    }
    found = values(plain)
    assert (found["revision"], found["branch"], found["repository"]) == (commit, "topic", ADDRESS)
    assert (found["default_branch"], found["merge_base"]) == ("main", cloned.main[1])
    assert values({**plain, "GIT_BRANCH": "detached"})["branch"] == "topic"  # by Git
    branch = {**plain, "BRANCH_NAME": "feature/x"}
    assert values(branch)["branch"] == "feature/x"
    primary = values({**plain, "BRANCH_NAME": "trunk", "BRANCH_IS_PRIMARY": "true"})
    assert primary["default_branch"] == "trunk"
    # A pull request that Jenkins has merged into its target; the head is in a ref of its own.
    cloned.local.git("update-ref", "refs/remotes/origin/PR-3", commit)
    cloned.local.git("merge", "-q", "--no-ff", "-m", "Merge commit", "origin/main")
    change = {
        **plain,
        "GIT_COMMIT": cloned.local.git("rev-parse", "HEAD"),
        "BRANCH_NAME": "PR-3",
        "CHANGE_ID": "3",
        "CHANGE_TARGET": "main",
        "CHANGE_BRANCH": "topic",
    }
    found = values(change)
    assert (found["revision"], found["branch"], found["pull_request"]) == (commit, "topic", "3")
    assert found["merge_base"] == cloned.main[1]


def test_buildkite(cloned: Clone) -> None:
    environment = {
        "BUILDKITE": "true",
        "BUILDKITE_COMMIT": "HEAD",
        "BUILDKITE_BRANCH": "topic",
        "BUILDKITE_PULL_REQUEST": "false",
        "BUILDKITE_PIPELINE_DEFAULT_BRANCH": "main",
        "BUILDKITE_REPO": "git@forge.example:team/app.git",
    }
    found = values(environment)
    assert (found["revision"], found["branch"], found["merge_base"]) == (
        *(cloned.topic[1], "topic", cloned.main[1]),
    )
    assert "pull_request" not in found
    (cloned.local.folder / "version.txt").write_text("1.4")
    cloned.local.git("add", "version.txt")
    assert values(environment)["revision"] == cloned.topic[1]
    assert values({})["revision"] == f"{cloned.topic[1]}-dirty"
    fork = {"BUILDKITE_PULL_REQUEST_REPO": "git://forge.example/ann/app.git"}
    assert values({**environment, **fork})["branch"] == "ann:topic"
    mirror = {"BUILDKITE_PULL_REQUEST_REPO": "mirror"}
    assert values({**environment, **mirror})["branch"] == "mirror:topic"
    request = {"BUILDKITE_PULL_REQUEST": "5", "BUILDKITE_PULL_REQUEST_BASE_BRANCH": "main"}
    assert values({**environment, **request})["pull_request"] == "5"


def test_a_checkout_outside_of_ci(cloned: Clone) -> None:
    found = values({})
    assert found == {
        "revision": cloned.topic[1],
        "revision_at": "2026-11-05T10:00:00+00:00",
        "branch": "topic",
        "default_branch": "main",
        "merge_base": cloned.main[1],
        "merge_base_at": "2026-11-03T10:00:00+00:00",
        "repository": ADDRESS,
        "subject": "topic 2",
        "author": "Ada Lovelace",
    }
    cloned.local.git("switch", "-q", "-c", "mine")
    assert values({})["branch"] == "mine"
    cloned.local.git("checkout", "-q", "--detach")
    facts = client.find_facts({}, {})
    assert facts["branch"].value == "mine"
    assert facts["branch"].origin.endswith("--contains, and 1 more have it")
    cloned.local.git("checkout", "-q", "origin/main~1")
    found = values({})
    assert (found["branch"], found["revision"]) == ("main", cloned.main[2])
    assert "merge_base" not in found
    # A merge that only this checkout has is not on the trunk.
    cloned.local.git("merge", "-q", "--no-ff", "-m", "Merge", "origin/topic")
    assert values({})["branch"] == "HEAD"


def test_options_win_and_an_empty_one_omits_a_value(cloned: Clone) -> None:
    found = values({}, branch="other", merge_base=cloned.main[0], repository="", author="")
    assert (found["branch"], found["merge_base"]) == ("other", cloned.main[0])
    assert {"repository", "author"}.isdisjoint(found)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("git@forge.example:team/app.git", ADDRESS),
        ("forge.example:team/app.git", ADDRESS),
        ("ssh://git@forge.example:2222/team/app.git", ADDRESS),
        ("git://forge.example/team/app", ADDRESS),
        ("https://forge.example/team/app.git/", ADDRESS),
        ("https://ci-token:secret@Forge.Example:443/team/app.git", ADDRESS),
        ("https://user:p@ss@forge.example/team/app.git", ADDRESS),
        ("http://u:p@host:8080/team/app.git", "http://host:8080/team/app"),
        ("/srv/git/app.git", "/srv/git/app"),
        ("C:/git/app", "C:/git/app"),
    ],
)
def test_a_repository_has_one_address_without_credentials(url: str, address: str) -> None:
    assert client.web_address(url) == address


def test_a_damaged_event_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text("[")
    path = str(tmp_path / "event.json")
    with pytest.raises(client.ClientError, match="GITHUB_EVENT_PATH"):
        values({"GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": path})
    with pytest.raises(client.ClientError, match="cannot be read"):
        values({"GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": f"{path}x"})
