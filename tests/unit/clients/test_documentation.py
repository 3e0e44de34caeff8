"""The commands and configurations of the documents are those of the client."""

from __future__ import annotations

import re
import shlex
import subprocess
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from scheduler.clients import kiln_client as client

ROOT = Path(__file__).parents[3]
DOCUMENTS = ("docs/tracking.md", "docs/results.md", "README.md")


def text_of(name: str) -> str:
    return (ROOT / name).read_text()


def configurations() -> list[dict[Any, Any]]:
    blocks = re.findall(r"```yaml\n(.*?)```", text_of("docs/tracking.md"), re.DOTALL)
    return [yaml.safe_load(block) for block in blocks]


def commands(text: str) -> Iterator[Namespace]:
    """Parse each command line of the client in a text; unknown options end the test."""
    joined = text.replace("\\\n", " ")
    for match in re.finditer(
        r'python3? (?:-m |"\$RUNNER_TEMP/)?kiln_client(?:\.py)?"? (.+)', joined
    ):
        line = re.split(r" >>? | \||`", match.group(1))[0]
        if "--help" not in line:
            arguments = shlex.split(line.replace('"$request"', "1"))
            yield client.make_parser().parse_args(arguments)


def test_the_commands_of_the_documents_are_valid() -> None:
    names = {options.command for name in DOCUMENTS for options in commands(text_of(name))}
    assert names == {"push", "compare", "check", "pending", "skip"}


def test_the_example_for_github_actions() -> None:
    workflow, _ = [one for one in configurations() if "jobs" in one]
    permissions = {"contents": "read", "checks": "write", "pull-requests": "write"}
    assert workflow["permissions"] == permissions
    (job,) = workflow["jobs"].values()
    checkout, measure, again, check = job["steps"]
    assert checkout["with"]["fetch-depth"] == 0, "a merge base needs the history"
    assert check["env"]["GITHUB_TOKEN"] == "${{ github.token }}"
    runs = [[options.command for options in commands(step["run"])] for step in job["steps"][1:]]
    assert runs == [["push"], ["pending", "push"], ["check"]]
    assert again["if"] == check["if"] == "github.event_name == 'pull_request'"
    assert "if" not in measure, "the default branch is what others are compared with"


def test_the_example_of_a_scheduled_job() -> None:
    _, workflow = [one for one in configurations() if "jobs" in one]
    (job,) = workflow["jobs"].values()
    script = job["steps"][-1]["run"]
    pending, *others = commands(script)
    assert [options.command for options in (pending, *others)] == ["pending", "push", "skip"]
    assert pending.repository, "it would skip the bisections of other repositories"
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_the_example_for_gitlab_ci() -> None:
    (job,) = [one["performance"] for one in configurations() if "performance" in one]
    assert job["variables"]["GIT_DEPTH"] == 0
    script = "\n".join(job["script"])
    assert [options.command for options in commands(script)] == ["push", "check"]


def test_the_documents_state_the_exit_statuses() -> None:
    table = (
        text_of("docs/tracking.md").partition("| exit status of `check`")[2].partition("\n\n")[0]
    )
    stated = {int(status) for status in re.findall(r"^\| (\d) \|", table, re.MULTILINE)}
    assert stated == {client.PASSED, client.FAILED, client.ERROR, client.NOTHING_COMPARED}
