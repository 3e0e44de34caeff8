"""What was measured of a commit as recorded results: one run of the file each run of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from scheduler.benchmark.measurement import Measurement
from scheduler.ir.bindings import Bindings
from scheduler.ir.graph import Graph
from scheduler.ir.index.text import print_expr
from scheduler.results.checks import DONE
from scheduler.results.collect import task_record, timed_record
from scheduler.results.model import (
    BuildFacts,
    CandidateRecord,
    Compiler,
    GraphId,
    KernelText,
    Results,
    RunRecord,
    TaskRecord,
)
from scheduler.results.origin import origin_now
from scheduler.runtime.device import DeviceInfo
from scheduler.tuning.budget import Budget
from scheduler.tuning.problems import TuningProblem
from tests.benchmarks.gpu.history.folder import Commit, History, build_json

if TYPE_CHECKING:
    from tests.benchmarks.gpu.history.measure import Contender


@dataclass(frozen=True)
class Setting:
    """What all of a measurement have in common."""

    folder: Path
    history: History
    graph: Graph
    device: DeviceInfo
    bindings: Bindings


def results_of(
    commit: Commit, found: Sequence[tuple[TuningProblem, Contender]], setting: Setting
) -> Results:
    """The results of one commit. What measured is today's Kiln; the commit is that of the kernels,
    which is what a series' revision is of."""
    runs = min(len(one.runs) for _, one in found)
    kernels = {
        one.call.kernel: _text(one, commit.kernels[one.call.kernel].source, setting.folder)
        for _, one in found
    }
    return Results(
        dict(sorted(kernels.items())),
        tuple(_run(commit, found, place, setting) for place in range(runs)),
    )


def _run(
    commit: Commit, found: Sequence[tuple[TuningProblem, Contender]], place: int, setting: Setting
) -> RunRecord:
    compilers = tuple(dict.fromkeys(_compiler(one, setting.folder) for _, one in found))
    measured = [one.runs[place] for _, one in found]
    begun, over = min(one[0] for one in measured), max(one[1] for one in measured)
    origin = replace(origin_now(commit.commit), version="", date=over.isoformat())
    return RunRecord(
        origin=origin,
        graph=GraphId(setting.graph.name, setting.graph.digest),
        device=setting.device.id,
        target=setting.history.target,
        bindings=dict(setting.bindings),
        seed=0,
        strategy="",
        budget=Budget(),
        candidate_limit=1,
        state=DONE,
        reason="",
        note=f"{commit.commit[:9]} of {commit.date}: {commit.subject}. Run {place + 1}.",
        started_at=begun.isoformat(),
        finished_at=over.isoformat(),
        devices=(setting.device,),
        compilers=compilers,
        tasks=tuple(_tasks(found, place, compilers, setting.folder)),
    )


def _tasks(
    found: Sequence[tuple[TuningProblem, Contender]],
    place: int,
    compilers: tuple[Compiler, ...],
    folder: Path,
) -> Iterator[TaskRecord]:
    for problem, one in found:
        begun, over, measured = one.runs[place]
        seconds = (over - begun).total_seconds()
        compiler = compilers.index(_compiler(one, folder))
        yield task_record(problem, seconds, [_candidate(one, measured, compiler, folder)])


def _candidate(
    one: Contender, measured: Measurement, compiler: int, folder: Path
) -> CandidateRecord:
    entry = one.manifest.kernels[one.call.kernel]
    code = one.commit.kernels[one.call.kernel].code
    build = build_json(folder, code)
    resources = build["resources"]
    return CandidateRecord(
        position=0,
        state=DONE,
        config=dict(entry.config),
        stage="",
        reason="",
        detail="",
        chosen=True,
        tied=False,
        at_s=0.0,
        kernel=one.call.kernel,
        description="the default configuration",
        call={
            name: value if isinstance(value, str) else print_expr(value)
            for name, value in one.call.args.items()
        },
        line_origins=(),
        build=BuildFacts(compiler, code, build["duration_s"], resources),
        timed=timed_record(measured, 0),
    )


def _compiler(one: Contender, folder: Path) -> Compiler:
    build = build_json(folder, one.commit.kernels[one.call.kernel].code)
    made = build["toolchain"]
    return Compiler(made["name"], made["version"], made["path_digest"], tuple(build["flags"]))


def _text(one: Contender, source: str, folder: Path) -> KernelText:
    entry = one.manifest.kernels[one.call.kernel]
    return KernelText(
        source_digest=source,
        template=entry.template,
        config=dict(entry.config),
        source_file=Path(entry.source).name,
        source=(folder / "sources" / source).read_text(),
        args=entry.args,
        launches=entry.launches,
        workspace_bytes=entry.workspace_bytes,
    )
