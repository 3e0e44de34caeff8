"""The models that the demo shows: imported once, compiled, and timed on CPU emulation."""

from __future__ import annotations

from collections.abc import Iterator

from codegen_app.models import Graph, TuningRun
from codegen_app.services import graphs, tuning
from scheduler import samples
from scheduler.ir.operations import GroupKind

DEVICE = "cpu"
MODELS = ("gpt2_2layer", "llama_2layer")
# The emulator does about a hundred million multiplications a second: a token's worth of each
# symbolic size is enough to see every kernel run, at full width.
SMALL = 16
CANDIDATES = 2
TIMED = (GroupKind.GEMM,)


def import_models() -> Iterator[str]:
    """Import and ask for a run of each model that has none yet; one line each, for people."""
    for name in MODELS:
        graph, _ = graphs.import_graph(samples.path(name), name, graphs.DEFAULT_TARGETS, None)
        if TuningRun.objects.filter(graph=graph).exists():
            continue
        bindings = small_bindings(graph)
        note = sizes_note(graph, bindings)
        tuning.start_run(
            graph,
            DEVICE,
            DEVICE,
            bindings,
            None,
            note=note,
            kinds=TIMED,
            candidate_limit=CANDIDATES,
        )
        yield f"{name}: {graph.node_count} nodes imported; timed on CPU emulation. {note}".strip()


def small_bindings(graph: Graph) -> dict[str, int]:
    """Each symbolic size at ``SMALL``, or as near to it as its bounds allow."""
    return {
        name: min(max(SMALL, info["min"]), info["hint"], info["max"] or SMALL)
        for name, info in graph.symbols.items()
    }


def sizes_note(graph: Graph, bindings: dict[str, int]) -> str:
    """Says which sizes are smaller than in the model's own example."""
    smaller = [
        f"{name}={value} instead of {graph.symbols[name]['hint']}"
        for name, value in bindings.items()
        if value != graph.symbols[name]["hint"]
    ]
    if not smaller:
        return ""
    return f"Sizes bound small for the emulator: {', '.join(smaller)}."
