"""Ours and Triton's kernels of a problem through the same model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import scheduler.cycles
import scheduler.isa
from scheduler.build.cache import CodeCache
from scheduler.build.model import Toolchain
from scheduler.cycles import report_json
from scheduler.cycles.kernel_file import KernelFile, model_file
from scheduler.cycles.report import Report
from scheduler.errors import UserError
from scheduler.isa.rocm.emulator.state import OUTSIDE
from scheduler.targets import Target, boards
from scheduler.targets.amd import amd_hardware
from tests.benchmarks.cycles.candidates import choosers
from tests.benchmarks.cycles.peers.compiling import Compiled, Compiler
from tests.benchmarks.cycles.peers.launches import Kernel, Peer
from tests.benchmarks.cycles.peers.problems import Problem
from tests.benchmarks.cycles.peers.table import Modelled, Row
from tests.support.families import ModelledKernel, conflict, longest, matrix_busy, modelled
from tests.support.stores import narrow_share, spilled


@dataclass(frozen=True)
class Places:
    """What kernels of ours are built with, and where what was built and modelled is kept."""

    compiler: Compiler
    toolchain: Toolchain
    cache: CodeCache
    reports: Path


def row_of(problem: Problem, target: Target, places: Places, candidates: int) -> Row:
    """The default, so many of the other ``candidates``, and each peer, modelled."""
    family, board = problem.family, boards(target.name)[0]
    plan = family.plan()
    make = partial(modelled, plan, target, places.toolchain, places.cache)
    ours = _ours("default", target, make)
    tried = tuple(
        _ours(title, target, partial(make, choose))
        for title, choose in (choosers(plan, target, candidates) if candidates else ())
    )
    speed = board.peak_flops("f16") if family.matrix else float(board.memory_bytes_per_s)
    peak_us = family.work / (speed or 1.0) * 1e6
    peers = list(problem.peers(amd_hardware(target).wavefront))
    theirs = _theirs(peers, target, places)
    return Row(target.name, problem.name, problem.bar, peak_us, ours, theirs, tried)


def _ours(title: str, target: Target, make: Callable[[], Sequence[ModelledKernel]]) -> Modelled:
    try:
        found = make()
    except UserError as error:
        return Modelled(title, error=" ".join(str(error).split())[:300])
    return summary(title, target, [(one.listing, one.report) for one in found])


def _theirs(peers: Sequence[Peer], target: Target, places: Places) -> tuple[Modelled, ...]:
    gpu = amd_hardware(target)
    kernels = [kernel for peer in peers for kernel in peer.kernels]
    requests = [kernel.request(gpu.processor, gpu.wavefront) for kernel in kernels]
    made = iter(places.compiler.compiled(requests))
    return tuple(
        _their(peer, [next(made) for _ in peer.kernels], target, places.reports) for peer in peers
    )


def _their(peer: Peer, made: Sequence[Compiled], target: Target, kept: Path) -> Modelled:
    error = next((one.error for one in made if one.error), "")
    if error:
        return Modelled(peer.title, error=error)
    try:
        found = [
            (one.listing, _report(kernel, one, target, kept))
            for kernel, one in zip(peer.kernels, made, strict=True)
        ]
    except UserError as refused:
        return Modelled(peer.title, error=str(refused))
    return summary(peer.title, target, found)


def _report(kernel: Kernel, made: Compiled, target: Target, kept: Path) -> Report:
    """Modelled, or as it was by the same model of the same code."""
    gpu, board = amd_hardware(target), boards(target.name)[0]
    launch = kernel.launch(gpu.wavefront, made.lds_bytes)
    text = f"{_model_digest()} {board} {launch} {made.listing}"
    file = kept / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.report.json"
    if file.is_file():
        return report_json.read(file.read_bytes())
    kernels = KernelFile(kernel.function, made.listing, (kernel.function,))
    report = model_file(kernels, target, board, launch)
    kept.mkdir(parents=True, exist_ok=True)
    file.write_bytes(report_json.write(report))
    return report


@cache
def _model_digest() -> str:
    """Of the model's sources, and of what reads and runs listings for it."""
    digest = hashlib.sha256()
    for package in (scheduler.cycles, scheduler.isa):
        for file in sorted(Path(package.__path__[0]).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def summary(title: str, target: Target, found: Sequence[tuple[str, Report]]) -> Modelled:
    """Of the kernels that compute a problem one after the other, as their listings and reports."""
    launches = [launch for _, report in found for launch in report.launches]
    unknown = {name for _, report in found for name in report.unknown}
    astray = {note for launch in launches for note in launch.notes if OUTSIDE in note}
    if any(launch.cut for launch in launches):
        return Modelled(title, error="cut short by the model's limits: its time is not known")
    if unknown:
        return Modelled(title, error=f"not known to the model: {', '.join(sorted(unknown))}")
    if astray:
        return Modelled(title, error=f"not this problem: {'; '.join(sorted(astray))}")
    return Modelled(
        title,
        sum(report.time_us.mid for _, report in found),
        max(map(conflict, launches)),
        sum(spilled(listing) for listing, _ in found),
        narrow_share(found, target),
        matrix_busy(longest([report for _, report in found])),
    )
