"""Choices of kernels as JSON: for another installation, or as a backup."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from codegen_app.accounts import audit
from codegen_app.graphs.models import Problem, TemplateNode
from codegen_app.kernels.models import GeneratedKernel
from codegen_app.kernels.services import engine, recording
from codegen_app.platform import sanitize
from codegen_app.tuning.models import Selection
from codegen_app.tuning.services import selections
from scheduler.errors import MachineError, UserError
from scheduler.ir.codec import decode, make_codec
from scheduler.stats.intervals import bounds_of
from scheduler.targets import names

SCHEMA = 1
_MAX_LINES = 5_000
_NOT_MADE = "unknown here"
_NOT_RECORDED = (
    "not recorded here, and generating it takes too long for a page:"
    " run kiln manage selections import FILE on the server"
)
_MAX_SIZES = 1_000  # characters of a choice's sizes, which are part of an index


@dataclass(frozen=True)
class ImportSummary:
    """The result of an import: how many choices are new, how many are selected already, and why
    others are left out."""

    new: int
    known: int
    skipped: tuple[str, ...]


@dataclass(frozen=True)
class _SelectionLine:
    """The fields of a choice that are read; the rest of an exported line is for people."""

    problem: str
    kernel: str
    source_digest: str
    target: str
    device_name: str
    toolchain: str
    bindings: Mapping[str, int]

    @property
    def bucket(self) -> dict[str, Any]:
        """Return the choice's bucket."""
        keys = ("target", "device_name", "toolchain", "bindings")
        return {key: getattr(self, key) for key in keys}


@dataclass(frozen=True)
class _SelectionsFile:
    selections: tuple[_SelectionLine, ...]


def export() -> dict[str, Any]:
    """Return the current selections as JSON."""
    serving = Selection.objects.filter(until__isnull=True).select_related(
        "problem", "kernel", "result"
    )
    return {
        "schema": SCHEMA,
        "selections": [
            {
                "problem": row.problem.digest,
                "op": row.problem.op,
                "summary": row.problem.summary,
                "target": row.target,
                "device_name": row.device_name,
                "toolchain": row.toolchain,
                "bindings": row.bindings,
                "kernel": row.kernel.name,
                "source_digest": row.kernel.source_digest,
                "template": row.kernel.template,
                "config": row.kernel.config,
                "median_ns": row.result.median_ns if row.result else None,
                "low_ns": row.result.low_ns if row.result else None,
                "high_ns": row.result.high_ns if row.result else None,
                "bounds": bounds_of(len(row.result.samples_ns)) if row.result else None,
                "n": len(row.result.samples_ns) if row.result else None,
                "since": row.since.isoformat(),
                "reason": row.reason,
            }
            for row in serving.order_by("problem__digest", "target", "device_name", "pk")
        ],
    }


def import_text(
    text: str | bytes, actor: AbstractBaseUser | None, why: str = "", *, make: bool = True
) -> ImportSummary:
    """Select the choices of a file here: all, or none if the file is invalid.

    An unrecorded kernel is rendered again if its problem is known (with ``make``: it may take
    minutes per graph); no kernel source is taken from the file. Raises ``UserError``.
    """
    new = known = 0
    skipped: list[str] = []
    with transaction.atomic():
        for line in _read(text):
            problem = Problem.objects.filter(digest=line.problem).first()
            if problem is None:
                skipped.append(f"{line.kernel}: its problem is unknown here")
                continue
            kernel = GeneratedKernel.objects.filter(
                name=line.kernel, source_digest=line.source_digest, template_nodes__problem=problem
            ).first()
            if kernel is None and make:
                kernel = _generated_kernel(problem, line)
            if kernel is None:
                skipped.append(
                    f"{line.kernel}: its kernel is {_NOT_MADE if make else _NOT_RECORDED}"
                )
                continue
            reason = sanitize.storable_text(f"imported{f': {why}' if why else ''}", 300)
            if selections.choose({"problem_id": problem.pk, **line.bucket}, kernel, reason, actor):
                new += 1
            else:
                known += 1
        audit.note(
            actor, "import selections", f"{new} new, {known} known, {len(skipped)} left", why
        )
    return ImportSummary(new, known, tuple(skipped))


def _read(text: str | bytes) -> tuple[_SelectionLine, ...]:
    try:
        content = json.loads(text)
        is_text = sanitize.storable_json(content) == content
    except (ValueError, RecursionError) as error:
        raise UserError(f"the file is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise UserError(f"the file has no selections of schema {SCHEMA}")
    if not is_text:
        raise UserError("the file contains a NUL or an unpaired surrogate")
    file = decode(make_codec(), content, _SelectionsFile, "the file")
    if len(file.selections) > _MAX_LINES:
        raise UserError(f"the file has more than {_MAX_LINES} selections: import it in parts")
    for number, line in enumerate(file.selections):
        if line.target not in names():
            raise UserError(f"selections[{number}].target: unknown target {line.target!r}")
        if len(line.device_name) > 200 or len(line.toolchain) > 240:
            raise UserError(f"selections[{number}]: a name is too long")
        sizes = line.bindings
        if len(json.dumps(dict(sizes))) > _MAX_SIZES or any(
            abs(size) >= 2**63 for size in sizes.values()
        ):
            raise UserError(f"selections[{number}].bindings: not sizes of a model")
    return file.selections


def _generated_kernel(problem: Problem, line: _SelectionLine) -> GeneratedKernel | None:
    """Return the kernel that the engine generates with that name and source; None if there is none,
    or if the graph's file is missing."""
    nodes = TemplateNode.objects.filter(problem=problem).select_related("graph__file")
    for node in nodes[:1]:
        try:
            callers = engine.callers(node.graph.file.digest, node.name, line.target)
            caller = callers.get(line.kernel)
            if caller is not None:
                prepared = engine.scheduled(node.graph.file.digest)
                backend = engine.scheduling_for(node.graph.file.digest, line.target)
                row = recording.record_candidate(node, node.offered, prepared, caller, backend)
                return row if row.source_digest == line.source_digest else None
        except MachineError:  # unknown whether it can be generated
            raise
        except (FileNotFoundError, UserError):
            continue
    return None
