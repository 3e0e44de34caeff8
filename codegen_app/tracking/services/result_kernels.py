"""The rows that recorded results refer to: graphs, problems, kernels and builds.

Kernels are rendered again from their configurations; a file's text becomes a kernel's source only
on request, and such a kernel is shown, never called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from functools import cached_property

from codegen_app.graphs.models import Graph, Problem, TemplateNode
from codegen_app.graphs.services.sizes import checked_bindings
from codegen_app.kernels.models import Build, GeneratedKernel, KernelUse
from codegen_app.kernels.models.build import ELSEWHERE
from codegen_app.kernels.services import engine, problem_work, recording
from codegen_app.platform import artifacts
from codegen_app.tuning.models.benchmark_result import IMPORTED
from codegen_app.web.row import build_row
from codegen_app.workers.models import State
from scheduler import pipeline
from scheduler.benchmark.measurement import Measurement
from scheduler.codegen.kernel import ConfigValue
from scheduler.codegen.names import is_named_by_code
from scheduler.codegen.scheduling import BaseScheduling
from scheduler.errors import UserError
from scheduler.ir.index.text import print_expr
from scheduler.results.model import (
    CandidateRecord,
    KernelText,
    MeasurementRecord,
    RunRecord,
    TaskRecord,
)
from scheduler.runtime.device import DeviceInfo
from scheduler.targets import find


class RecordedKernels:
    """The kernels of one run of another installation, at its sizes and for its target. Raises
    ``UserError`` if its graph is not here."""

    def __init__(
        self, run: RunRecord, texts: Mapping[str, KernelText], listings: Mapping[str, str]
    ) -> None:
        """``texts`` has the kernels that may be shown with the file's source, ``listings`` those of
        builds by the digest of their code."""
        graph = Graph.objects.filter(digest=run.graph.digest).select_related("file").first()
        if graph is None:
            raise UserError(
                f"graph: {run.graph.name} ({run.graph.digest[:12]}) is not imported:"
                " import its model"
            )
        if graph.state != State.DONE:
            raise UserError(f"graph: {graph} is not prepared yet ({graph.state}): try again later")
        if set(run.bindings) != set(graph.symbols):
            raise UserError(f"bindings: {graph} has the sizes {', '.join(graph.symbols) or 'none'}")
        try:
            checked_bindings(graph, run.bindings)
        except UserError as error:
            raise UserError(f"bindings: {error}") from None
        self.run, self.graph = run, graph
        self.finished_at = datetime.fromisoformat(run.finished_at)
        self._texts, self._listings = texts, listings
        self._configs_by_node: dict[tuple[int, str], list[dict[str, ConfigValue]]] = {}

    def node(self, task: TaskRecord) -> tuple[TemplateNode, Problem]:
        """Return the first node that has the task's problem."""
        nodes = self.graph.template_nodes.filter(problem__digest=task.problem)
        node = nodes.select_related("problem").order_by("position").first()
        if node is None or node.problem is None:
            raise UserError(
                f"problem: no kernel of {self.graph} implements {task.problem[:12]} ({task.title})"
                " in this version of Kiln"
            )
        problem_work.record(
            node.problem,
            self.scheduled.node(node.name),
            self.scheduled.schedule.lowered,
            self.run.bindings,
        )
        return node, node.problem

    @cached_property
    def scheduled(self) -> engine.Scheduled:
        try:
            return engine.scheduled(self.graph.file.digest)
        except FileNotFoundError:
            message = f"graph: the file of {self.graph} is missing from the storage"
            raise UserError(message) from None

    @cached_property
    def _backend(self) -> BaseScheduling:
        """Return the backend that generates kernels for the run's target alone, as a tuning run
        does."""
        return pipeline.scheduling(self.scheduled.schedule, (find(self.run.target),))

    def build(self, kernel: GeneratedKernel, record: CandidateRecord) -> Build:
        """Return the build with that very compiler if it exists; else a row with what is known,
        which is compiled on request."""
        assert record.build is not None
        compiler = self.run.compilers[record.build.compiler]
        listing = self._listings.get(record.build.code_digest)
        row, _ = Build.objects.get_or_create(
            kernel=kernel,
            target=self.run.target,
            flags=list(compiler.flags),
            toolchain=compiler.name,
            toolchain_version=compiler.version,
            toolchain_digest=compiler.digest,
            defaults={
                "state": State.CANCELLED,
                "reason": ELSEWHERE,
                "code_digest": record.build.code_digest,
                "duration_s": record.build.duration_s,
                "resources": {name: dict(part) for name, part in record.build.resources.items()},
                "finished_at": self.finished_at,
                "listing": artifacts.store(listing.encode(), ".s") if listing else None,
            },
        )
        row.kernel = kernel  # a row that existed would read it again
        return row

    def kernel(self, node: TemplateNode, record: CandidateRecord) -> GeneratedKernel:
        """Return the row of the candidate's kernel: the generator's own, or from the file's text.

        The name depends on the code; the comment above the code is from whichever model came first.
        """
        scheduled, config = self.scheduled.node(node.name), dict(record.config)
        for backend in self._backend.members:
            if not backend.serves(scheduled) or config not in self._configs(backend, node):
                continue
            caller = backend.template(scheduled).generate(config)
            if caller.name != record.kernel:
                continue
            row = recording.record_candidate(
                *(node, record.position, self.scheduled, caller, self._backend)
            )
            rendered = caller.kernel
            if not self._backend.is_candidate(scheduled, rendered.template, rendered.config):
                # Recorded under other rules: shown, but never called by code here.
                uses = KernelUse.objects.filter(kernel=row, template_node=node, is_default=False)
                uses.update(generator="")
            return row
        text = self._texts.get(record.kernel)
        if text is None:
            raise UserError(
                f"kernel: this version does not generate {record.kernel}; import with sources to"
                " show it from the text in the file"
            )
        marks = {member.source_file: member.comment_mark for member in self._backend.members}
        if text.source_file not in marks:
            raise UserError(f"kernel: no generator for {text.source_file} on {self.run.target}")
        if not is_named_by_code(record.kernel, text.source, marks[text.source_file]):
            raise UserError(
                f"kernel: the source of {record.kernel} in the file does not match its name"
            )
        return _display_only_kernel(record, text, node)

    def _configs(self, backend: BaseScheduling, node: TemplateNode) -> list[dict[str, ConfigValue]]:
        """Return a backend's configurations for a node, the default first."""
        key = id(backend), node.name
        if key not in self._configs_by_node:
            template = backend.template(self.scheduled.node(node.name))
            configs = [dict(config) for config in template.configs()]
            if backend in (self._backend.members[0], self.scheduled.backend):
                configs = [dict(template.default_config()), *configs]
            self._configs_by_node[key] = configs
        return self._configs_by_node[key]


def _display_only_kernel(
    record: CandidateRecord, text: KernelText, node: TemplateNode
) -> GeneratedKernel:
    """Return a kernel that this generator does not make, from what the file says."""
    row, _ = GeneratedKernel.objects.get_or_create(
        name=record.kernel,
        defaults={
            "source_digest": text.source_digest,
            "template": text.template,
            "config": dict(text.config),
            "source": text.source,
            "source_file": text.source_file,
            "args": [asdict(arg) for arg in text.args],
            "launches": [
                as_json_lists(
                    {**asdict(launch), "grid": [print_expr(extent) for extent in launch.grid]}
                )
                for launch in text.launches
            ],
            "workspace_bytes": print_expr(text.workspace_bytes)[:500],
        },
    )
    KernelUse.objects.get_or_create(
        kernel=row,
        template_node=node,
        defaults={
            "position": recording.MAX_RECORDED + record.position,
            "description": record.description,
            "call": dict(record.call),
            "line_origins": [as_json_lists(asdict(origin)) for origin in record.line_origins],
        },
    )
    return row


def measurement_of(run: RunRecord, timed: MeasurementRecord, kernel: str) -> Measurement:
    """Return a recorded measurement as the engine represents it."""
    device = run.devices[timed.device]
    return build_row(
        Measurement,
        timed,
        kernel=kernel,
        device=device.id,
        bindings=run.bindings,
        emulated=device.emulated,
    )


def device_of(run: RunRecord, timed: MeasurementRecord) -> DeviceInfo:
    """Return the device of a recorded measurement, marked as imported."""
    device = run.devices[timed.device]
    return replace(device, name=f"{device.name}{IMPORTED}")


def as_json_lists(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields with lists as JSON has them, so that new rows read like rows from the
    database."""
    return {name: list(part) if isinstance(part, tuple) else part for name, part in fields.items()}
