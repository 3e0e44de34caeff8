"""Checks recorded results beyond the types of their fields.

Each error names the row and the field: ``runs[0].tasks[2].candidates[5].timed.samples_ns``.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from scheduler.benchmark.metrics import TIME, MetricInputs
from scheduler.codegen.bundle_paths import kernel_folder
from scheduler.errors import Stage, UserError
from scheduler.ir.codec import decode, default_codec
from scheduler.ir.dtypes import DType
from scheduler.isa.occupancy import rules_of
from scheduler.results.model import (
    CandidateRecord,
    KernelText,
    MeasurementRecord,
    Results,
    RunRecord,
    TaskRecord,
)
from scheduler.results.points.fields import LARGEST, UNSTORABLE, check_clock, require
from scheduler.runtime.device import DeviceInfo
from scheduler.targets import find

DONE, REJECTED, QUARANTINED, CANCELLED = "done", "rejected", "quarantined", "cancelled"
STATES = (DONE, REJECTED, QUARANTINED, CANCELLED)
MAX_TASKS, MAX_CANDIDATES, MAX_SAMPLES = 10_000, 200_000, 100_000
_DIGEST = re.compile(r"[0-9a-f]{64}")
_RELATIVE_TOLERANCE = 1e-9  # relative: sums of floats differ in their last digits


def check(results: Results, what: str) -> None:
    """Raise ``UserError`` for the first invalid row."""
    try:
        for name, kernel in results.kernels.items():
            _check_kernel(f"kernels[{name}]", name, kernel)
        for index, run in enumerate(results.runs):
            _check_run(f"runs[{index}]", run, results.kernels)
        require(bool(results.runs), "runs", "no runs")
        _check_listings(results)
    except UserError as error:
        raise UserError(f"{what}: {error}") from None


def check_timestamps(results: Results, now: datetime, what: str) -> None:
    """Raise ``UserError`` for the first run with a timestamp in the future or before 2000;
    timestamps are positions in histories."""
    for index, run in enumerate(results.runs):
        moments = {"finished_at": run.finished_at, "origin.date": run.origin.date}
        if run.revision is not None:
            moments["revision.date"] = run.revision.date
        for name, text in moments.items():
            check_clock(datetime.fromisoformat(text), now, f"{what}: runs[{index}].{name}")


def _check_kernel(path: str, name: str, kernel: KernelText) -> None:
    try:
        kernel_folder(name)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    _check_text(f"{path}.template", kernel.template, 64, empty=False)
    _check_text(f"{path}.source_file", kernel.source_file, 40, empty=False)
    _check_text(f"{path}.source", kernel.source, 2**24, empty=False)
    _check_json(f"{path}.config", kernel.config)
    digest = hashlib.sha256(kernel.source.encode()).hexdigest()
    require(digest == kernel.source_digest, f"{path}.source_digest", "does not match the source")
    for arg in kernel.args:
        _check_text(f"{path}.args", f"{arg.name}{arg.dtype}", 200)
    for launch in kernel.launches:
        _check_text(f"{path}.launches", f"{launch.function}{''.join(launch.args)}", 10_000)


def _check_listings(results: Results) -> None:
    builds = (
        record.build.code_digest
        for run in results.runs
        for task in run.tasks
        for record in task.candidates
        if record.build is not None
    )
    digests = set(builds) if results.listings else set()
    for digest, listing in results.listings.items():
        path = f"listings[{digest[:64]}]"
        require(digest in digests, path, "no build has this code_digest")
        _check_text(path, listing, 2**24, empty=False)


def _check_run(path: str, run: RunRecord, kernels: Mapping[str, KernelText]) -> None:
    for name, text, max_chars in (
        ("origin.version", run.origin.version, 40),
        ("origin.commit", run.origin.commit, 64),
        ("origin.host", run.origin.host, 200),
        ("graph.name", run.graph.name, 200),
        ("device", run.device, 32),
        ("target", run.target, 24),
        ("strategy", run.strategy, 24),
        ("reason", run.reason, 500),
        ("note", run.note, 10_000),
    ):
        _check_text(f"{path}.{name}", text, max_chars)
    try:
        find(run.target)
    except UserError as error:
        raise UserError(f"{path}.target: {error}") from None
    _check_digest(f"{path}.graph.digest", run.graph.digest)
    require(run.state in STATES, f"{path}.state", f"{run.state[:40]!r} is not a final state")
    for name, size in run.bindings.items():
        _check_text(f"{path}.bindings", name, 200)
        require(0 <= size <= LARGEST, f"{path}.bindings", f"invalid size of {name}")
    for name, limit in vars(run.budget).items():
        require(limit is None or 0 < limit < 2**31, f"{path}.budget.{name}", "invalid limit")
    limit = run.candidate_limit
    require(limit is None or 0 < limit < 2**31, f"{path}.candidate_limit", "invalid limit")
    require(run.seed is None or abs(run.seed) <= LARGEST, f"{path}.seed", "too large")
    _parse_moment(f"{path}.origin.date", run.origin.date)
    if run.revision is not None:
        _check_text(f"{path}.revision.commit", run.revision.commit, 64, empty=False)
        _check_text(f"{path}.revision.subject", run.revision.subject, 1000)
        _parse_moment(f"{path}.revision.date", run.revision.date)
    started = _parse_moment(f"{path}.started_at", run.started_at)
    finished = _parse_moment(f"{path}.finished_at", run.finished_at)
    require(finished >= started, f"{path}.finished_at", "must not be before started_at")
    for index, device in enumerate(run.devices):
        _check_device(f"{path}.devices[{index}]", device, run)
    for index, compiler in enumerate(run.compilers):
        _check_text(f"{path}.compilers[{index}].name", compiler.name, 32, empty=False)
        _check_text(f"{path}.compilers[{index}].version", compiler.version, 200)
        _check_text(f"{path}.compilers[{index}].digest", compiler.digest, 64)
        _check_json(f"{path}.compilers[{index}].flags", list(compiler.flags))
    require(len(run.tasks) <= MAX_TASKS, f"{path}.tasks", "too many")
    problems: set[str] = set()
    for index, task in enumerate(run.tasks):
        task_at = f"{path}.tasks[{index}]"
        require(task.problem not in problems, f"{task_at}.problem", "duplicate")
        problems.add(task.problem)
        _check_task(task_at, task, run, kernels)


def _check_device(path: str, device: DeviceInfo, run: RunRecord) -> None:
    _check_text(f"{path}.id", device.id, 32)
    require(not device.modelled, f"{path}.id", "modelled times are not measurements")
    _check_text(f"{path}.name", device.name, 180, empty=False)
    _check_text(f"{path}.driver", device.driver, 200)
    _check_text(f"{path}.runtime", device.runtime, 200)
    _check_json(f"{path}.attributes", device.attributes)
    require(device.target == run.target, f"{path}.target", "differs from the target of the run")
    emulates = bool(find(run.target).emulates)
    require(device.emulated == emulates, f"{path}.emulated", f"contradicts the target {run.target}")
    require(0 <= device.compute_units < 2**31, f"{path}.compute_units", "invalid number of units")
    require(0 <= device.memory_bytes <= LARGEST, f"{path}.memory_bytes", "invalid size")


def _check_task(
    path: str, task: TaskRecord, run: RunRecord, kernels: Mapping[str, KernelText]
) -> None:
    _check_digest(f"{path}.problem", task.problem)
    digest = hashlib.sha256(task.text.encode("utf-8", "surrogatepass")).hexdigest()
    require(digest == task.problem, f"{path}.text", "does not match the digest of the problem")
    _check_text(f"{path}.node", task.node, 200)
    _check_text(f"{path}.title", task.title, 300)
    _check_text(f"{path}.reason", task.reason, 500)
    require(task.state in STATES, f"{path}.state", f"{task.state[:40]!r} is not a final state")
    why = task.state not in {REJECTED, QUARANTINED} or bool(task.reason)
    require(why, f"{path}.reason", f"required if {task.state}")
    _check_finite(f"{path}.spent_s", (task.spent_s,), minimum=0.0)
    _check_json(f"{path}.operands", [vars(operand) for operand in task.operands])
    for operand in task.operands:
        is_known = operand.dtype in {dtype.label for dtype in DType}
        require(is_known, f"{path}.operands", f"{operand.dtype[:40]!r} is not an element type")
    _check_json(f"{path}.shape", task.shape and vars(task.shape))
    require(len(task.candidates) <= MAX_CANDIDATES, f"{path}.candidates", "too many")
    _require_unique(path, "position", (record.position for record in task.candidates))
    _require_unique(path, "kernel", (record.kernel for record in task.candidates if record.kernel))
    _require_unique(path, "chosen", (True for record in task.candidates if record.chosen))
    for index, candidate in enumerate(task.candidates):
        _check_candidate(f"{path}.candidates[{index}]", candidate, run, kernels)


def _check_candidate(
    path: str, candidate: CandidateRecord, run: RunRecord, kernels: Mapping[str, KernelText]
) -> None:
    state = candidate.state
    require(0 <= candidate.position < 2**30, f"{path}.position", "invalid position")
    require(state in STATES, f"{path}.state", f"{state[:40]!r} is not a final state")
    _check_text(f"{path}.reason", candidate.reason, 500)
    _check_text(f"{path}.detail", candidate.detail, 2**20)
    _check_text(f"{path}.description", candidate.description, 300)
    _check_json(f"{path}.config", candidate.config)
    _check_json(f"{path}.call", candidate.call)
    _check_json(f"{path}.line_origins", [vars(origin) for origin in candidate.line_origins])
    failed = state in {REJECTED, QUARANTINED}
    require(not failed or bool(candidate.reason), f"{path}.reason", f"required if {state}")
    stages = {"", *map(str, Stage)}
    require(candidate.stage in stages, f"{path}.stage", f"{candidate.stage[:40]!r} is not a stage")
    require(
        (candidate.timed is not None) == (state == DONE),
        f"{path}.timed",
        f"does not fit state {state}",
    )
    require(
        not candidate.chosen or state == DONE,
        f"{path}.chosen",
        f"does not fit state {state}",
    )
    require(
        bool(candidate.kernel) == (candidate.build is not None),
        f"{path}.build",
        "kernel and build must be given together",
    )
    is_listed = not candidate.kernel or candidate.kernel in kernels
    require(is_listed, f"{path}.kernel", f"{candidate.kernel[:80]} is not in kernels")
    needed = state in {DONE, QUARANTINED}
    require(bool(candidate.kernel) or not needed, f"{path}.kernel", f"required if {state}")
    if candidate.at_s is not None:
        _check_finite(f"{path}.at_s", (candidate.at_s,), minimum=0.0, maximum=1e9)
    if candidate.build is not None:
        build_at = f"{path}.build"
        require(
            0 <= candidate.build.compiler < len(run.compilers),
            f"{build_at}.compiler",
            "not in compilers",
        )
        _check_text(f"{build_at}.code_digest", candidate.build.code_digest, 64)
        _check_finite(f"{build_at}.duration_s", (candidate.build.duration_s,), minimum=0.0)
        _check_json(f"{build_at}.resources", candidate.build.resources)
        rules = rules_of(find(run.target))
        if rules is not None and rules.figures is not None:
            _check_figures(f"{build_at}.resources", candidate.build.resources, rules.figures)
    if candidate.timed is not None:
        _check_measurement(f"{path}.timed", candidate.timed, run)


def _check_figures(path: str, resources: Mapping[str, Mapping[str, Any]], kind: type) -> None:
    """Check that everything that the target's occupancy rules read is present."""
    for function, figures in resources.items():
        function_at = f"{path}[{function[:80]}]"
        decode(default_codec(), figures, kind, function_at)
        for name, figure in figures.items():
            require(
                not isinstance(figure, int) or figure >= 0, function_at, f"{name} is not a count"
            )


def _check_measurement(path: str, timed: MeasurementRecord, run: RunRecord) -> None:
    require(0 <= timed.device < len(run.devices), f"{path}.device", "not in devices")
    require(1 <= timed.batch < 2**31, f"{path}.batch", "invalid number of launches")
    count = len(timed.samples_ns)
    require(1 <= count <= MAX_SAMPLES, f"{path}.samples_ns", f"invalid number of samples: {count}")
    _check_finite(f"{path}.samples_ns", timed.samples_ns, minimum=0.0)
    require(min(timed.samples_ns) > 0, f"{path}.samples_ns", "must be above 0")
    for ns, reason in timed.rejected:
        _check_finite(f"{path}.rejected", (ns,))
        _check_text(f"{path}.rejected", reason, 500)
    for name, values in timed.readings.items():
        _check_text(f"{path}.readings", name, 80, empty=False)
        _check_finite(f"{path}.readings[{name}]", values)
    for name, metric in timed.metrics.items():
        _check_text(f"{path}.metrics", f"{name}{metric.unit}", 80, empty=False)
        _check_finite(f"{path}.metrics[{name}]", (metric.value, metric.low, metric.high))
    require(TIME in timed.metrics, f"{path}.metrics", f"{TIME} is missing")
    derived, recorded = MetricInputs(timed.samples_ns).time, timed.metrics[TIME]
    agree = (derived.unit, derived.n) == (recorded.unit, recorded.n) and all(
        math.isclose(getattr(derived, name), getattr(recorded, name), rel_tol=_RELATIVE_TOLERANCE)
        for name in ("low", "value", "high")
    )
    agree = agree and recorded.low <= recorded.value <= recorded.high
    require(agree, f"{path}.metrics[{TIME}]", "does not match the samples")
    gate = timed.check
    _check_finite(f"{path}.check", (gate.max_error, gate.bound, gate.ratio), minimum=0.0)
    passed = gate.passed and gate.ratio <= 1 and gate.guard_intact
    require(passed, f"{path}.check", "a failed check must not have times")
    _check_text(f"{path}.check.detail", gate.detail, 2**20)


def _check_text(path: str, text: str, max_chars: int, *, empty: bool = True) -> None:
    require(len(text) <= max_chars, path, f"more than {max_chars} characters")
    require(empty or bool(text), path, "must not be empty")
    require(UNSTORABLE.search(text) is None, path, "must not contain NUL or unpaired surrogates")


def _check_json(path: str, value: Any) -> None:
    """Check that a value is plain data that a database row can store."""
    if isinstance(value, str):
        _check_text(path, value, 10_000)
    elif isinstance(value, Mapping):
        for name, part in value.items():
            _check_text(path, name, 1_000)
            _check_json(path, part)
    elif isinstance(value, list | tuple):
        for part in value:
            _check_json(path, part)
    elif isinstance(value, float):
        _check_finite(path, (value,))
    elif isinstance(value, int):
        require(abs(value) <= LARGEST, path, "contains a number that is too large")
    else:
        require(value is None, path, "not a plain JSON value")


def _check_finite(
    path: str, values: Iterable[float], minimum: float = -math.inf, maximum: float = math.inf
) -> None:
    for value in values:
        good = math.isfinite(value) and minimum <= value <= maximum
        require(good, path, f"{value} is out of range")


def _check_digest(path: str, text: str) -> None:
    require(_DIGEST.fullmatch(text) is not None, path, f"{text[:40]!r} is not a SHA-256 digest")


def _parse_moment(path: str, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(f"{path}: {text[:40]!r} is not a time in ISO 8601") from None
    require(moment.tzinfo is not None, path, "missing time zone")
    require(2000 <= moment.year < 2200, path, "the year must be between 2000 and 2199")
    return moment


def _require_unique(path: str, field: str, values: Iterable[object]) -> None:
    all_values = list(values)
    require(len(set(all_values)) == len(all_values), f"{path}.candidates", f"duplicate {field}")
