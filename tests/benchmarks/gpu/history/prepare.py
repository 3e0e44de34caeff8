"""The kernels of samples at each commit that may have changed them, built by its own engine.

Those from before NVIDIA's targets existed were written for GPUs of waves of 32 without matrix
instructions; the same sources compile for NVIDIA, with today's compiler and headers.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.flags import parse_flags
from scheduler.build.model import Build
from scheduler.build.recipe import recipe_of
from scheduler.build.toolchains import Search, find_target_toolchains, pick_toolchain
from scheduler.bundle.reader import open_bundle
from scheduler.bundle.writer import build_record
from scheduler.codegen import bundle_paths
from scheduler.errors import Rejected, UserError
from scheduler.targets import find
from tests.benchmarks.gpu.history.folder import (
    INDEX,
    Commit,
    History,
    Kernel,
    Sample,
    load,
    manifest_folder,
)
from tests.benchmarks.printing import say

REPOSITORY = Path(__file__).parents[4]
BUILDER = Path(__file__).with_name("builder.py")
# What kernels are made by; a commit of the rest leaves them as they are.
OLDER = "gfx1030"
PARTS = ("build", "codegen", "fusion", "ir", "lowering", "matrix_instructions.py", "targets")
# Sizes at which most of these take 10 µs or more on an H200, and a reference on the host seconds.
# A kernel of each kind is enough of a sample: layers repeat theirs, and products differ in size.
SAMPLES = (
    Sample(
        "gpt2_2layer",
        {"s70": 1024},
        ("layer_norm_1", "addmm", "addmm_2", "addmm_3", "scaled_dot_product_attention"),
    ),
    Sample(
        "llama_2layer",
        {"s70": 2048},
        ("scaled_dot_product_attention", "linear_14", "linear_6", "cat_2", "cos", "mean_1"),
    ),
    Sample("llama3_8b_1layer", {"s70": 512}, ("scaled_dot_product_attention", "linear_3")),
    Sample("bert_2layer", {}, ("scaled_dot_product_attention", "linear_4")),
    Sample("vit_2layer", {}, ("scaled_dot_product_attention", "linear_5", "conv2d")),
    Sample("resnet_small", {}, ("conv2d_1", "conv2d_10", "max_pool2d")),
)
SAID = "said.json"
_INSTRUCTION = re.compile(r"^ */\*[0-9a-f]{4,}\*/ .*$", re.MULTILINE)  # as nvdisasm writes them
_DIGEST_IN_NAME = re.compile(r"_[0-9a-f]{8}\b")
_SECONDS = 3600
_LEAST = timedelta(microseconds=1)


def prepare(
    folder: Path,
    wanted: Sequence[Sample],
    target: str,
    commits: str,
    cache: Path,
    flags: str = "-O3",
) -> History:
    """Build what is not in the folder yet; ``commits`` are ranges as git takes them. Ended at any
    time, it goes on where it was. Raises ``UserError`` for a folder of something else."""
    new = History([*wanted], target, flags)
    history = load(folder) if (folder / INDEX).is_file() else new
    if (history.samples, history.target, history.flags) != (new.samples, target, flags):
        raise UserError(f"{folder} holds other samples, or another target: take another")
    known = {one.commit for one in history.commits}
    for commit in _placed(_log(commits)):
        if commit.commit in known:
            continue
        made = _add(history, _made(folder, history, commit, cache))
        history.save(folder)
        count = sum(map(len, made.bundles.values()))
        what = f"{count} kernels" + (" as before" if made.as_before else "")
        say(f"{commit.commit[:9]} {made.left_out or what}: {commit.subject}")
        for what, why in made.said.items():
            say(f"  {what}: {why}")
    return history


def _add(history: History, made: Commit) -> Commit:
    """In its place, whenever it was made, and what it is there: what changed is seen beside the
    one before it."""
    history.commits = sorted([*history.commits, made], key=lambda one: one.date)
    before: Commit | None = None
    for place, one in enumerate(history.commits):
        if one.left_out:
            continue
        same = before is not None and _instructions(one.bundles) == _instructions(before.bundles)
        before = history.commits[place] = replace(one, as_before=same)
    return next(one for one in history.commits if one.commit == made.commit)


def _log(commits: str) -> Iterator[tuple[str, str, str]]:
    paths = [f"scheduler/{part}" for part in PARTS]
    order = ("--topo-order", "--reverse", "--no-merges")
    command = ["log", *order, "--format=%H%x00%cI%x00%s", *commits.split(), "--", *paths]
    for line in _git(*command).decode().splitlines():
        commit, date, subject = line.split("\0")
        yield commit, date, subject


def _placed(log: Iterator[tuple[str, str, str]]) -> Iterator[Commit]:
    """In Git's order, each with a moment after that of the one before: a rebase gives many commits
    the same one, and a history is ordered by moments."""
    last: datetime | None = None
    for commit, date, subject in log:
        moment = datetime.fromisoformat(date)
        last = moment if last is None or moment > last else last + _LEAST
        yield Commit(commit, last.isoformat(), subject)


def _git(*arguments: str) -> bytes:
    command = ["git", "-C", str(REPOSITORY), *arguments]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise UserError(f"git {arguments[0]}: {done.stderr.decode().strip()}")
    return done.stdout


def _made(folder: Path, history: History, commit: Commit, cache: Path) -> Commit:
    bundles: dict[str, dict[str, Kernel]] = {}
    built, why = _built(history, commit, cache)
    if why:
        return _left_out(commit, why)
    said: dict[str, str] = json.loads((built / SAID).read_text())
    rendered_for = (built / "target").read_text()
    if rendered_for == history.target:
        rendered_for = ""
    for bundle in sorted(path for path in built.iterdir() if path.is_dir()):
        try:
            if rendered_for:
                said |= _build_sources(bundle, history, cache)
            kernels = _kernels(bundle, history.target)
        except (UserError, KeyError, OSError) as error:
            said[bundle.name] = f"it cannot be read today: {error}"[:300]
            continue
        if kernels:
            bundles[bundle.name] = kernels
    if not bundles:
        return _left_out(commit, "; ".join(f"{what}: {why}" for what, why in said.items()))
    for name, kernels in bundles.items():
        _keep(folder, built / name, history.target, manifest_folder(folder, commit, name), kernels)
    return replace(commit, bundles=bundles, said=said, rendered_for=rendered_for)


def _left_out(commit: Commit, why: str) -> Commit:
    return Commit(commit.commit, commit.date, commit.subject, left_out=why[:500] or "no kernels")


def _instructions(bundles: dict[str, dict[str, Kernel]]) -> set[tuple[str, str]]:
    return {
        (name, one.instructions) for name, kernels in bundles.items() for one in kernels.values()
    }


def _build_sources(bundle: Path, history: History, cache: Path) -> dict[str, str]:
    """Build for the history's target what was rendered for the older one; what could not be."""
    target, codes = find(history.target), CodeCache(cache)
    found = find_target_toolchains(target, Search(path=os.environ.get("PATH", ""), cache=codes))
    toolchain = pick_toolchain(found, target)
    entries = {name: one for name, one in open_bundle(bundle).manifest.kernels.items()
               if (bundle / one.source).is_file()}  # fmt: skip

    def made(name: str) -> Build | Rejected:
        source = (bundle / entries[name].source).read_text()
        return build(source, name, target, toolchain, codes, flags=parse_flags(history.flags))

    said = {}
    with ThreadPoolExecutor(2) as pool:
        for name, one in zip(entries, pool.map(made, entries), strict=True):
            if isinstance(one, Build):
                place = bundle / bundle_paths.build_folder(name, history.target)
                shutil.copytree(one.directory, place, dirs_exist_ok=True)
                (place / bundle_paths.BUILD_RECORD).write_text(build_record(one))
            else:
                said[f"{bundle.name}/{name}"] = one.reason
    return said


def _built(history: History, commit: Commit, cache: Path) -> tuple[Path, str]:
    """What the commit's engine built, and the last line of why it could not. What was built is
    kept beside the code cache, whole."""
    wanted = {
        "samples": [
            {"name": one.key, "file": str(one.file.resolve()), "sizes": one.sizes,
             "nodes": one.nodes}
            for one in history.samples
        ],
        **{"target": history.target, "older": OLDER, "flags": history.flags},
    }  # fmt: skip
    digest = hashlib.sha256(json.dumps(wanted).encode() + BUILDER.read_bytes()).hexdigest()
    built = cache.resolve() / "commits" / f"{commit.commit}-{digest[:12]}"
    if (built / SAID).is_file():
        return built, ""
    shutil.rmtree(built, ignore_errors=True)
    built.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kiln-history-", dir=built.parent) as place:
        tree, out = Path(place, "tree"), Path(place, "out")
        tree.mkdir()
        out.mkdir()
        archive = _git("archive", commit.commit, "scheduler", "pyproject.toml")
        subprocess.run(["tar", "-x", "-C", str(tree)], input=archive, check=True)
        asked = json.dumps({**wanted, "cache": str(cache.resolve()), "out": str(out)})
        why = _run(tree, [sys.executable, "-P", str(BUILDER), asked])
        if not why:
            out.rename(built)
    return built, why


def _run(tree: Path, command: list[str]) -> str:
    """The last line of what a failed command said; "" where it went well."""
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
    """Those that were built."""
    found = {}
    manifest = open_bundle(bundle).manifest
    for name, entry in manifest.kernels.items():
        record = bundle / bundle_paths.build_folder(name, target) / bundle_paths.BUILD_RECORD
        if not record.is_file():
            continue
        source = (bundle / entry.source).read_bytes()
        build = json.loads(record.read_text())
        library = recipe_of(find(target), Path(entry.source).name).library_file
        digest = hashlib.sha256(record.with_name(library).read_bytes()).hexdigest()
        found[name] = Kernel(
            build["code_digest"],
            f"code/{digest[:16]}/{library}",
            hashlib.sha256(source).hexdigest(),
            _code_without_names(record.parent, build["code_digest"]),
        )
    return found


def _code_without_names(built: Path, code: str) -> str:
    """The digest of the listing's instructions with their addresses; of all the code where there
    is no listing of that kind."""
    listing = built / "kernel.s"
    lines = _INSTRUCTION.findall(listing.read_text()) if listing.is_file() else []
    text = _DIGEST_IN_NAME.sub("", "\n".join(lines))
    return hashlib.sha256(text.encode()).hexdigest() if lines else code


def _keep(folder: Path, bundle: Path, target: str, place: Path, kernels: dict[str, Kernel]) -> None:
    place.mkdir(parents=True, exist_ok=True)
    shutil.copy(bundle / bundle_paths.MANIFEST, place)
    (folder / "sources").mkdir(exist_ok=True)
    for name, kernel in kernels.items():
        library = folder / kernel.library
        library.parent.mkdir(parents=True, exist_ok=True)
        built = bundle / bundle_paths.build_folder(name, target)
        for file in (bundle_paths.BUILD_RECORD, library.name):
            shutil.copy(built / file, library.parent)
        source = next(built.parent.glob("source.*"))
        shutil.copy(source, folder / "sources" / kernel.source)
