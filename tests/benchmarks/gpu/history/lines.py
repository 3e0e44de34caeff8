"""What is measured against each other: for each problem, the kernels of all commits for it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import cast

from scheduler import pipeline
from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.measurement import Check, Measurement
from scheduler.bundle.manifest import Manifest, request_of
from scheduler.bundle.reader import open_bundle
from scheduler.codegen.benchmark_request import BenchmarkRequest, TensorArg
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.kernel import KernelCall
from scheduler.codegen.scheduling import BaseScheduling, Candidates
from scheduler.errors import UserError
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.ir.bindings import Bindings, hint_bindings
from scheduler.targets import find
from scheduler.tuning.problems import TuningProblem, find_problems
from tests.benchmarks.gpu.history.folder import (
    Commit,
    History,
    Kernel,
    Sample,
    build_json,
    manifest_folder,
)


@dataclass
class Contender:
    """A commit's kernel for a problem; ``runs`` are what was measured of it, one each run. Equal
    code that is called alike has one candidate, checked once and timed for each of its commits."""

    commit: Commit
    language: str
    manifest: Manifest
    call: KernelCall
    kernel: Kernel
    candidate: BuiltCandidate
    check: Check | None = None
    runs: list[tuple[datetime, datetime, Measurement]] = field(default_factory=list)

    @property
    def label(self) -> str:
        return f"{self.commit.commit[:9]} {self.call.kernel}"


@dataclass
class Line:
    """A problem of a sample with its contenders, in the order of their commits."""

    problem: TuningProblem
    contenders: list[Contender]

    @property
    def codes(self) -> int:
        """How many different code objects they are."""
        return len({one.kernel.code for one in self.contenders})


@dataclass
class Model:
    """A sample, scheduled by today's engine."""

    sample: Sample
    plan: Schedule
    bindings: Bindings
    lines: list[Line] = field(default_factory=list)


class _Defaults:
    """A scheduling that offers nothing but its defaults: rendering hundreds of candidates, of which
    none is measured, takes longer than measuring."""

    def __init__(self, scheduling: BaseScheduling) -> None:
        self._scheduling = scheduling

    def default(self, node: SchedulerNode) -> TemplateCaller:
        return self._scheduling.default(node)

    def candidates(self, _node: SchedulerNode) -> Candidates:
        return Candidates((), ())


def models(folder: Path, history: History) -> tuple[list[Model], list[str]]:
    """Every sample with what can be measured of it, and a line for each kernel that cannot be."""
    found, said = [], []
    for sample in history.samples:
        graph = pipeline.with_hints(pipeline.load(sample.file, sample.key), sample.sizes)
        plan = pipeline.schedule(pipeline.lower(graph))
        model = Model(sample, plan, hint_bindings(plan.lowered.graph.symbols))
        said += _fill(model, folder, history)
        found.append(model)
    return found, said


def _fill(model: Model, folder: Path, history: History) -> Iterator[str]:
    """Add the lines; yields what cannot be measured, and why."""
    target = find(history.target)
    backend = cast(BaseScheduling, _Defaults(pipeline.scheduling(model.plan, (target,))))
    problems = find_problems(model.plan, backend, target, model.bindings, only=model.sample.nodes)
    model.lines = [Line(problem, []) for problem in problems]
    of = {_tensors(line.problem.request): line for line in model.lines}
    for commit in history.measured:
        for bundle, kernels in commit.bundles.items():
            sample, _, language = bundle.rpartition("-")
            if sample != model.sample.key:
                continue
            try:
                manifest = open_bundle(manifest_folder(folder, commit, bundle)).manifest
            except UserError as error:
                yield f"{commit.commit[:9]} {bundle}: {error}"
                continue
            known = dict(kernels)
            for call in manifest.calls:
                kernel = known.pop(call.select_variant(model.bindings).kernel, None)
                if kernel is None:
                    continue  # of another language, or another call of a kernel that is here
                try:
                    one = _contender(
                        folder, history, model, commit, language, manifest, call, kernel
                    )
                except (UserError, OSError, KeyError, ValueError) as error:
                    yield f"{commit.commit[:9]} {call.kernel}: {error}"
                    continue
                line = of.get(_tensors(one.candidate.request))
                if line is None:
                    yield f"{one.label}: no kernel of today computes the same of the same buffers"
                elif any(o.commit is commit and o.language == language for o in line.contenders):
                    yield f"{one.label}: the commit has another kernel for {line.problem.title}"
                else:
                    line.contenders.append(one)
            for name in known:
                yield f"{commit.commit[:9]} {name}: no call of the manifest is of it"


def _contender(
    folder: Path, history: History, model: Model, commit: Commit, language: str,
    manifest: Manifest, call: KernelCall, kernel: Kernel,
) -> Contender:  # fmt: skip
    library = (folder / kernel.library).resolve()
    if not library.is_file() or not (folder / "sources" / kernel.source).is_file():
        raise UserError(f"{kernel.library} or its source is missing")
    build_json(folder, kernel)
    request = request_of(manifest, call, history.target, model.bindings)
    key = hashlib.sha256(f"{library} {request}".encode()).hexdigest()
    candidate = BuiltCandidate(key, str(library), request)
    return Contender(
        commit, language, manifest, call.select_variant(model.bindings), kernel, candidate
    )


def _tensors(request: BenchmarkRequest) -> frozenset[tuple[object, ...]]:
    tensors = (arg for arg in request.args if isinstance(arg, TensorArg))
    return frozenset(
        (one.buffer, one.dtype, tuple(one.size), tuple(one.stride), one.is_output)
        for one in tensors
    )


def changed(line: Line) -> Mapping[str, list[Commit]]:
    """For each language the commits at which the code of the problem's kernel is another than at
    the one before."""
    found: dict[str, list[Commit]] = {}
    last: dict[str, str] = {}
    for one in line.contenders:
        if last.get(one.language, one.kernel.instructions) != one.kernel.instructions:
            found.setdefault(one.language, []).append(one.commit)
        last[one.language] = one.kernel.instructions
    return found
