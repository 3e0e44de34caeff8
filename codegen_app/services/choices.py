"""A graph's code with the kernels that serve its nodes: for bundles and wrappers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from codegen_app.models import Graph, TemplateNode
from codegen_app.selectors import serving
from codegen_app.selectors.serving import Bucket
from codegen_app.services import engine
from scheduler import pipeline
from scheduler.bundle.writer import wrapper_of
from scheduler.codegen.caller import TemplateCaller
from scheduler.fusion.nodes import SchedulerNode
from scheduler.outcome import UserError


def generated(graph: Graph, times: str = "") -> pipeline.Generated:
    """The graph's code, each node with what serves it in the bucket ``times``, else the default.

    Without ``times`` it is the latest bucket of a GPU. A symbolic size that was measured at
    smaller values too is served there by what was selected at those. The emulation's times choose
    nothing: they say nothing of a GPU. Raises ``UserError`` for a bucket that is not there.
    """
    scheduled = engine.scheduled(graph.file.digest)
    nodes = list(TemplateNode.objects.filter(graph=graph).select_related("problem"))
    known = serving.buckets(nodes)
    bucket = serving.find(known, times)
    if times and (bucket is None or bucket.name != times):
        raise UserError(f"{graph.name}: nothing was measured on {times!r}")
    if times and bucket is not None and bucket.emulated:
        raise UserError(f"{graph.name}: times of the CPU emulation select nothing for a GPU")
    if bucket is None or bucket.emulated:
        return pipeline.generate(scheduled.schedule, scheduled.backend.targets)
    usual = _selected(nodes, bucket)
    buckets = [
        (symbol, at_most, _chooser(graph, {**usual, **_selected(nodes, other)}))
        for symbol, at_most, other in serving.smaller(known, bucket)
    ]
    return pipeline.generate(
        scheduled.schedule, scheduled.backend.targets, _chooser(graph, usual), buckets
    )


def wrapper(graph: Graph, times: str = "") -> str:
    """``wrapper.py`` of that code for the graph's own targets. Raises ``UserError``."""
    manifest = generated(graph, times).manifest()
    return wrapper_of(replace(manifest, targets=tuple(graph.targets) or manifest.targets))


def _selected(nodes: Sequence[TemplateNode], bucket: Bucket) -> Mapping[str, str]:
    """The selected kernel by scheduled node, both by name."""
    names = {node.pk: node.name for node in nodes}
    served = serving.serving(nodes, bucket)
    return {names[pk]: one.kernel.name for pk, one in served.items() if one.selected}


def _chooser(graph: Graph, selected: Mapping[str, str]) -> pipeline.Chooser:
    def choose(node: SchedulerNode) -> TemplateCaller | None:
        name = selected.get(node.name)
        return engine.callers(graph.file.digest, node.name).get(name) if name else None

    return choose
