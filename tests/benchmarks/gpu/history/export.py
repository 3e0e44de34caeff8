"""What was measured of a sample as recorded results: of each commit a run of the file for each of
its runs and languages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scheduler.benchmark.measurement import Measurement
from scheduler.results.checks import DONE
from scheduler.results.collect import call_text, task_record, timed_record
from scheduler.results.model import (
    BuildFacts,
    CandidateRecord,
    Compiler,
    GraphId,
    KernelText,
    Results,
    RevisionRecord,
    RunRecord,
    TaskRecord,
)
from scheduler.results.origin import origin_now
from scheduler.runtime.device import DeviceInfo
from scheduler.tuning.budget import Budget
from scheduler.tuning.problems import TuningProblem
from tests.benchmarks.gpu.history.folder import Commit, History, build_json
from tests.benchmarks.gpu.history.lines import Contender, Model

Found = Sequence[tuple[TuningProblem, Contender]]


@dataclass(frozen=True)
class Setting:
    """What all of a sample's measurements have in common."""

    folder: Path
    history: History
    model: Model
    device: DeviceInfo
    measured_by: str  # the commit of the Kiln that measures


def results_of(setting: Setting) -> Results:
    """All that was measured. What measured is today's Kiln, the revision that of the kernels."""
    runs: list[RunRecord] = []
    kernels: dict[str, KernelText] = {}
    for commit in setting.history.measured:
        for language in ("hip", "cutedsl"):
            found = [
                (line.problem, one)
                for line in setting.model.lines
                for one in line.contenders
                if one.commit is commit and one.language == language and one.runs
            ]
            for place in range(min((len(one.runs) for _, one in found), default=0)):
                runs.append(_run(commit, found, place, setting))
            kernels |= {one.call.kernel: _text(one, setting.folder) for _, one in found}
    return Results(dict(sorted(kernels.items())), tuple(runs))


def _run(commit: Commit, found: Found, place: int, setting: Setting) -> RunRecord:
    compilers = tuple(dict.fromkeys(_compiler(one, setting.folder) for _, one in found))
    measured = [one.runs[place] for _, one in found]
    begun, over = min(one[0] for one in measured), max(one[1] for one in measured)
    graph = setting.model.plan.lowered.graph
    return RunRecord(
        origin=origin_now(setting.measured_by),
        graph=GraphId(graph.name, graph.digest),
        device=setting.device.id,
        target=setting.history.target,
        bindings=dict(setting.model.bindings),
        seed=0,
        strategy="",
        budget=Budget(),
        candidate_limit=1,
        state=DONE,
        reason="",
        note=_note(commit, place, setting.history.target),
        started_at=begun.isoformat(),
        finished_at=over.isoformat(),
        devices=(setting.device,),
        compilers=compilers,
        tasks=tuple(_tasks(found, place, compilers, setting.folder)),
        revision=RevisionRecord(commit.commit, commit.date, commit.subject),
    )


def _note(commit: Commit, place: int, target: str) -> str:
    said = f"Run {place + 1} of the kernels of {commit.commit[:9]}: {commit.subject}"
    if not commit.rendered_for:
        return said
    return (
        f"{said}. It did not know {target} yet: the sources are those for"
        f" {commit.rendered_for}, built for {target} by today's compiler"
    )


def _tasks(
    found: Found, place: int, compilers: tuple[Compiler, ...], folder: Path
) -> Iterator[TaskRecord]:
    for problem, one in found:
        begun, over, measured = one.runs[place]
        seconds = (over - begun).total_seconds()
        compiler = compilers.index(_compiler(one, folder))
        yield task_record(problem, seconds, [_candidate(one, measured, compiler, folder)])


def _candidate(
    one: Contender, measured: Measurement, compiler: int, folder: Path
) -> CandidateRecord:
    build = build_json(folder, one.kernel)
    return CandidateRecord(
        position=0,
        state=DONE,
        config=dict(one.manifest.kernels[one.call.kernel].config),
        stage="",
        reason="",
        detail="",
        chosen=True,
        tied=False,
        at_s=0.0,
        kernel=one.call.kernel,
        description="the default configuration",
        call=call_text(one.call),
        line_origins=(),
        build=BuildFacts(compiler, one.kernel.code, build["duration_s"], build["resources"]),
        timed=timed_record(measured, 0),
    )


def _compiler(one: Contender, folder: Path) -> Compiler:
    build = build_json(folder, one.kernel)
    made = build["toolchain"]
    return Compiler(made["name"], made["version"], made["path_digest"], tuple(build["flags"]))


def _text(one: Contender, folder: Path) -> KernelText:
    entry = one.manifest.kernels[one.call.kernel]
    return KernelText(
        source_digest=one.kernel.source,
        template=entry.template,
        config=dict(entry.config),
        source_file=Path(entry.source).name,
        source=(folder / "sources" / one.kernel.source).read_text(),
        args=entry.args,
        launches=entry.launches,
        workspace_bytes=entry.workspace_bytes,
    )
