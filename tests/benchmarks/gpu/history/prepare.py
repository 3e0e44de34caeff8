"""The kernels of a sample at each commit that changed them, built by that commit's own engine."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from scheduler.build.recipe import recipe_of
from scheduler.bundle.reader import read
from scheduler.outcome import UserError
from scheduler.targets import find
from tests.benchmarks.gpu.history.folder import INDEX, Commit, History, Kernel, load
from tests.benchmarks.printing import say

REPOSITORY = Path(__file__).parents[4]
# What kernels are made by; a commit of the rest leaves them as they are.
PARTS = ("build", "codegen", "fusion", "ir", "isa", "lowering", "matrix_instructions.py", "targets")
_SECONDS = 1800


def prepare(
    folder: Path, sample: str, target: str, commits: str, cache: Path, flags: str = "-O3"
) -> History:
    """Build what is not in the folder yet; ``commits`` is a range as git takes it. Ended at any
    time, it goes on where it was. Raises ``UserError`` for a folder of something else."""
    history = load(folder) if (folder / INDEX).is_file() else History(sample, target, [flags])
    if (history.sample, history.target, history.flags) != (sample, target, [flags]):
        raise UserError(f"{folder} holds {history.sample} for {history.target}: take another")
    known = {one.commit for one in history.commits}
    for commit, date, subject in _log(commits):
        if commit in known:
            continue
        made = _made(folder, history, Commit(commit, date, subject), cache)
        history.commits.append(made)
        history.save(folder)
        say(f"{commit[:9]} {made.left_out or f'{len(made.kernels)} kernels'}: {subject}")
    return history


def _log(commits: str) -> Iterator[tuple[str, str, str]]:
    paths = [f"scheduler/{part}" for part in PARTS]
    command = ["log", "--reverse", "--no-merges", "--format=%H%x00%cI%x00%s", commits, "--", *paths]
    for line in _git(*command).decode().splitlines():
        commit, date, subject = line.split("\0")
        yield commit, date, subject


def _git(*arguments: str) -> bytes:
    command = ["git", "-C", str(REPOSITORY), *arguments]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise UserError(f"git {arguments[0]}: {done.stderr.decode().strip()}")
    return done.stdout


def _made(folder: Path, history: History, commit: Commit, cache: Path) -> Commit:
    with tempfile.TemporaryDirectory(prefix="kiln-history-") as place:
        tree, bundle = Path(place, "tree"), Path(place, "bundle")
        tree.mkdir()
        archive = _git("archive", commit.commit, "scheduler", "pyproject.toml")
        subprocess.run(["tar", "-x", "-C", str(tree)], input=archive, check=True)
        if why := _compiled(tree, bundle, history, cache):
            return _left_out(commit, why)
        try:
            kernels = _kernels(bundle, history.target)
        except (UserError, KeyError, OSError) as error:
            return _left_out(commit, f"its bundle cannot be read today: {error}")
        before = history.measured[-1].kernels if history.measured else {}
        if _code(kernels) == _code(before):
            return _left_out(commit, "kernels as before")
        _keep(folder, bundle, history.target, commit, kernels)
    return Commit(commit.commit, commit.date, commit.subject, kernels)


def _left_out(commit: Commit, why: str) -> Commit:
    return Commit(commit.commit, commit.date, commit.subject, left_out=why[:500])


def _code(kernels: dict[str, Kernel]) -> set[str]:
    return {one.code for one in kernels.values()}


def _compiled(tree: Path, bundle: Path, history: History, cache: Path) -> str:
    """The last line of why it cannot be built; "" where it was."""
    command = [
        *(sys.executable, "-m", "scheduler", "compile", str(history.model.resolve())),
        *("--target", history.target, "--out", str(bundle), "--cache", str(cache)),
        *(f"--flags={flags}" for flags in history.flags),
    ]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=_SECONDS,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"not built within {_SECONDS} s"
    said = done.stderr.strip().splitlines() or ["it says nothing"]
    return f"it cannot be built: {said[-1]}" if done.returncode else ""


def _kernels(bundle: Path, target: str) -> dict[str, Kernel]:
    found = {}
    manifest = read(bundle).manifest
    for name, entry in manifest.kernels.items():
        source = (bundle / entry.source).read_bytes()
        build = json.loads((bundle / "kernels" / name / target / "build.json").read_text())
        library = recipe_of(find(target), Path(entry.source).name).library_file
        found[name] = Kernel(build["code_digest"], library, hashlib.sha256(source).hexdigest())
    return found


def _keep(
    folder: Path, bundle: Path, target: str, commit: Commit, kernels: dict[str, Kernel]
) -> None:
    place = folder / "commits" / commit.commit
    place.mkdir(parents=True, exist_ok=True)
    shutil.copy(bundle / "manifest.json", place)
    (folder / "sources").mkdir(exist_ok=True)
    for name, kernel in kernels.items():
        code = folder / "code" / kernel.code
        code.mkdir(parents=True, exist_ok=True)
        built = bundle / "kernels" / name / target
        for file in ("build.json", kernel.library):
            shutil.copy(built / file, code)
        source = next(built.parent.glob("source.*"))
        shutil.copy(source, folder / "sources" / kernel.source)
