"""Names are the field's (docs/glossary.md), and the command line's flags are its own affair."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(
    path
    for folder in ("scheduler", "codegen_app")
    for path in (ROOT / folder).rglob("*.py")
    if "migrations" not in path.parts
)

#: Words of identifiers that have a standard one in their place.
WHIMSICAL = re.compile(
    r"fates?|wish(es|ed)?|lost|apart|refus(e|es|ed|al)|said|told|verdict|judg(e|es|ed)|wanted|taken"
    r"|strangers?|kin"
)
#: A lease is lost in the literature, and a worker process in multiprocessing's libraries.
LOST = {"LeaseLostError", "WorkerLostError", "lease_lost", "on_lease_lost"}
#: A field of the API: how many series of a comparison got a result.
API = {"judged"}

FLAG = re.compile(r"(?<![\w-])--[a-z]")
#: Command lines of other programs.
COMMAND_LINES = {
    "codegen_app/platform/command_line.py",
    "codegen_app/site/demo/programs.py",
    "codegen_app/platform/postgres/programs.py",
    "codegen_app/platform/postgres/server.py",
    "codegen_app/platform/postgres/upgrade.py",
    "codegen_app/site/backups/database.py",
    "codegen_app/tracking/alerting/commits.py",
    "codegen_app/platform/system_user.py",
    "scheduler/build/cuda/commands.py",
    "scheduler/build/cutedsl/child.py",
    "scheduler/build/cutedsl/commands.py",
    "scheduler/clients/kiln_client.py",  # a command of its own
    "scheduler/cycles/constants_table.py",
    "scheduler/lowering/ops/table.py",  # likewise
    "scheduler/build/cuda/toolchains.py",
    "scheduler/build/rocm/commands.py",
    "scheduler/build/toolchains.py",
    "scheduler/results/origin.py",
}


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def identifiers(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def words(identifier: str) -> list[str]:
    """The words of a name in either style: ``lease_lost``, ``LeaseLostError``."""
    return re.findall(r"[a-z]+", re.sub(r"([A-Z])", r"_\1", identifier).lower())


def whimsical(tree: ast.Module) -> set[str]:
    names = set(identifiers(tree)) - LOST - API
    return {name for name in names if any(WHIMSICAL.fullmatch(word) for word in words(name))}


def test_identifiers_are_standard_terms() -> None:
    found = {path.relative_to(ROOT).as_posix(): whimsical(parsed(path)) for path in FILES}
    assert {name: names for name, names in found.items() if names} == {}


def flags(path: Path) -> list[str]:
    texts = (node.value for node in ast.walk(parsed(path)) if isinstance(node, ast.Constant))
    return [text for text in texts if isinstance(text, str) and FLAG.search(text)]


def is_command(path: Path) -> bool:
    return "commands" in path.relative_to(ROOT).parts[:-1]


@pytest.mark.full
def test_flags_are_named_by_commands_alone() -> None:
    """The engine and the pages speak of the thing; a command adds its flag to the message."""
    found = {
        path.relative_to(ROOT).as_posix(): flags(path) for path in FILES if not is_command(path)
    }
    assert {name for name, texts in found.items() if texts} == COMMAND_LINES


def test_both_searches_find_something() -> None:
    tree = ast.parse("class Fate:\n    def was_refused(self, told): self.lost = apart = '--bind'")
    assert whimsical(tree) == {"Fate", "apart", "lost", "told", "was_refused"}
    assert all(flags(path) for path in FILES if path.match("scheduler/commands/compile_.py"))
