"""Runs the tests that a change can break: ``python -m tests.changed [--since COMMIT] [--list]
[pytest's own options …]``.

A test file is picked where it imports what has changed, directly or by way of other modules, and
each is printed with the shortest such way. Modules that are named in texts (``"scheduler.text:f"``)
count as imported, and so do templates of kernels and headers by the names of their files; another
file counts as part of its folder's modules. Tests that ask for pages import all of the application.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("scheduler", "codegen_app")
_NAMED = re.compile(r"(?:scheduler|codegen_app|tests)(?:\.\w+)+(?=$|:)")
_PAGES = re.compile(r"\b(?:client|live_server|reader|tuner|page|anonymous)\b")
_FILE = re.compile(r"[\w.]+\.(?:jinja|h)\b")
_URLS = "codegen_app.urls"
_EVERYTHING = re.compile(r"pyproject\.toml|Makefile|deploy/requirements.*|tests/conftest\.py")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--since", default="", help="a commit; by default where main was left")
    parser.add_argument("--list", action="store_true", help="say what would run")
    options, rest = parser.parse_known_args()
    changed = changed_files(options.since)
    picked = pick(changed)
    for test, why in sorted(picked.items()):
        print(f"{test}: {why}")  # noqa: T201
    print(f"{len(changed)} files changed, {len(picked)} test files picked")  # noqa: T201
    if options.list or not picked:
        return 0
    command = [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "worksteal", *rest, *picked]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def changed_files(since: str) -> list[str]:
    """Names of files that differ from the commit, those included that git does not know yet."""
    bases = (git("merge-base", "HEAD", name) for name in _TRUNKS)
    base = since or next(filter(None, bases), "HEAD")
    tracked = git("diff", "--name-only", base).splitlines()
    return [*tracked, *git("ls-files", "--others", "--exclude-standard").splitlines()]


_TRUNKS = ("origin/main", "main")


def git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, check=False, capture_output=True, text=True
    )
    return done.stdout.strip()


def pick(changed: Iterable[str]) -> dict[str, str]:
    """Test files by name, each with why it is picked."""
    files = {module_of(file): file for file in texts()}
    importers = defaultdict(set)
    for importer, imported in imports(files):
        importers[imported].add(importer)
    for module, file in files.items():
        if module == file and not importers[file]:
            importers[file].update(beside(file, files))
    begin = {}
    for name in changed:
        if _EVERYTHING.fullmatch(name):
            return {file: name for file in files.values() if is_test(file)}
        own = module_of(name)
        begin |= dict.fromkeys([own] if own in files else beside(name, files), name)
    waiting, ways = deque(begin), {module: [name] for module, name in begin.items()}
    while waiting:
        module = waiting.popleft()
        for importer in sorted(importers[module] - ways.keys()):
            ways[importer] = [*ways[module], importer]
            waiting.append(importer)
    tests = {files[module]: way for module, way in ways.items() if module in files}
    picked = {file: way for file, way in tests.items() if is_test(file)}
    return {file: " <- ".join(reversed(way[:-1])) or "changed" for file, way in picked.items()}


def is_test(file: str) -> bool:
    return file.startswith("tests/") and Path(file).name.startswith("test_")


def texts() -> Iterator[str]:
    """Files that import or are imported: modules, templates of kernels, headers."""
    for folder in (*PACKAGES, "tests"):
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in (".py", ".jinja", ".h"):
                yield file.relative_to(ROOT).as_posix()


def module_of(file: str) -> str:
    """The name of a module; other files have theirs."""
    if not file.endswith(".py"):
        return file
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imports(files: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Pairs of modules of which the first imports the second, or names it in a text."""
    graph = grimp.build_graph(*PACKAGES)
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            yield module, imported
    others = {Path(file).name: file for file in files.values() if not file.endswith(".py")}
    for module, file in files.items():
        text = (ROOT / file).read_text()
        yield from ((module, others[name]) for name in _FILE.findall(text) if name in others)
        if file.endswith(".py"):
            for name in named(ast.parse(text), is_grimps=module.startswith(PACKAGES)):
                parents = (name, name.rpartition(".")[0])
                yield from ((module, known) for known in parents if known in files)
            yield from conftests(module, files)
        if file.startswith(("tests/app", "tests/e2e")) and _PAGES.search(text):
            yield module, _URLS


def conftests(module: str, files: dict[str, str]) -> Iterator[tuple[str, str]]:
    """What a test file gets from the conftest.py of its folders."""
    parts = module.split(".")[:-1] if module.startswith("tests.") else []
    for count in range(2, len(parts) + 1):
        conftest = ".".join((*parts[:count], "conftest"))
        if conftest in files and conftest != module:
            yield module, conftest


def named(tree: ast.Module, is_grimps: bool) -> Iterator[str]:
    """Modules that a file names: in imports, where grimp has not read them, and in texts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if match := _NAMED.match(node.value):
                yield match[0]
        elif is_grimps:
            continue
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def beside(name: str, files: dict[str, str]) -> list[str]:
    """The modules that a file which nothing imports may belong to; none for documents."""
    if name.startswith(("templates/", "static/")):
        return [_URLS]
    folder = Path(name).parent
    inside = name.startswith((*PACKAGES, "tests/"))
    return [module for module, file in files.items() if inside and Path(file).parent == folder]


if __name__ == "__main__":
    sys.exit(main())
