"""The demo's models: imported once, compiled, and timed on CPU emulation; and recorded results of
samples on GPUs, and a generated history."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from django.contrib.auth.models import User
from django.utils import timezone

from codegen_app.graphs.models import Graph
from codegen_app.graphs.services import imports as graphs
from codegen_app.tracking.services import generated_history, generated_team, result_import
from codegen_app.tuning.models import TuningRun
from codegen_app.tuning.services import run_requests
from codegen_app.workers.models import OPEN_STATES
from scheduler import samples
from scheduler.errors import MachineError, UserError
from scheduler.ir.operations import GroupKind
from scheduler.results import file as results_file
from scheduler.results.model import Results

DEVICE = "cpu"
MODELS = ("gpt2_2layer", "llama_2layer")
# The emulator does about a hundred million multiplications per second: a small value of each
# symbolic size is enough to run every kernel, at full width.
SMALL = 16
CANDIDATES = 2
TIMED = (GroupKind.GEMM,)


def import_models() -> Iterator[str]:
    """Import each model and request a run if it has none yet; yield one line each, for people."""
    for name in MODELS:
        graph, _ = _import_sample(name)
        if TuningRun.objects.filter(graph=graph, imported=None).exists():
            continue
        bindings = small_bindings(graph)
        note = sizes_note(graph, bindings)
        run_requests.start_run(
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


def generate_history(owner: str) -> Iterator[str]:
    """Store the generated history and team, once; yield a line for people each. ``owner`` is the
    user who gets the team's alerts."""
    history = generated_history.store()
    if history.points:
        yield f"a history of {history.points} generated points, in {history.series} series"
    team = generated_team.store(User.objects.get(username=owner), timezone.now())
    if team.points:
        yield f"a generated team: {team.points} points, a branch, a rule and a budget"


class RecordedResults:
    """The package's recorded results, each imported once its models are prepared."""

    def __init__(self, files: tuple[Path, ...]) -> None:
        self._files = list(files)
        self._read: dict[Path, Results] = {}

    @property
    def waiting(self) -> bool:
        """Return whether some are still to be imported."""
        return bool(self._files)

    def import_next(self) -> Iterator[str]:
        """Import what can be imported now; yield one line each, for people. Results that this
        version cannot show are left out with the reason."""
        for file in tuple(self._files):
            try:
                imported = self._import(file)
            except MachineError:
                raise
            except UserError as error:
                self._files.remove(file)
                yield f"recorded results are left out: {error}"
                continue
            if imported is None:
                continue
            self._files.remove(file)
            for run in imported.new:
                yield f"{run.graph}: recorded results imported. {run.imported}"
            if imported.points:
                yield f"{file.name}: a history of {imported.points} measured points imported"

    def _import(self, file: Path) -> result_import.ImportSummary | None:
        """Import a file; None while a model is not prepared yet."""
        results = self._read.get(file) or results_file.read(file)
        self._read[file] = results
        for run in results.runs:
            graph = Graph.objects.filter(digest=run.graph.digest).first()
            if graph is None:
                with suppress(KeyError):  # it is no sample
                    graph, _ = _import_sample(run.graph.name)
            if graph is not None and graph.state in OPEN_STATES:
                return None
        del self._read[file]
        # The package's own files are as trusted as its code.
        return result_import.record(results, file.name, None, "recorded", with_sources=True)


def _import_sample(name: str) -> tuple[Graph, bool]:
    """Import a sample model; raises ``KeyError`` if there is none of that name."""
    return graphs.import_graph(samples.path(name), name, graphs.DEFAULT_TARGETS, None)


def small_bindings(graph: Graph) -> dict[str, int]:
    """Return each symbolic size at ``SMALL``, or as near to it as its bounds allow."""
    return {
        name: min(max(SMALL, info["min"]), info["hint"], info["max"] or SMALL)
        for name, info in graph.symbols.items()
    }


def sizes_note(graph: Graph, bindings: dict[str, int]) -> str:
    """Return which sizes are smaller than in the model's own example."""
    smaller = [
        f"{name}={value} instead of {graph.symbols[name]['hint']}"
        for name, value in bindings.items()
        if value != graph.symbols[name]["hint"]
    ]
    if not smaller:
        return ""
    return f"Sizes bound small for the emulator: {', '.join(smaller)}."
