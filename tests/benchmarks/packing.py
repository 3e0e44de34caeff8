"""How long and in how much memory bundles of long models are packed.

    python -m pytest -s tests/benchmarks/packing.py

Models of one op over and over (``tests/support/long_models.py``), prepared as imported ones are;
their builds are bytes that nobody compiled, 4 KiB a file.
"""

from __future__ import annotations

import resource
import time
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from codegen_app.graphs.models import Graph
from codegen_app.graphs.services import imports as graphs
from codegen_app.kernels.models import Build, GeneratedKernel
from codegen_app.kernels.services import engine, preparation, recording
from codegen_app.platform import artifacts
from codegen_app.tuning.services import bundles
from codegen_app.workers import work
from codegen_app.workers.models import State
from scheduler import pipeline, untrusted
from scheduler.ir.serialize import graph_to_json
from tests.app import factories
from tests.benchmarks.printing import say
from tests.support import long_models

pytestmark = pytest.mark.django_db(transaction=True)
FILE = bytes(range(256)) * 16


@pytest.mark.parametrize(
    ("name", "length"),
    [("chain", 500), ("products", 500), ("shapes", 100), ("shapes", 2000), ("chain", 20_000)],
)
def test_packing(name: str, length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line: nodes, kernels, builds; seconds to know, to make the code, to pack; MiB."""
    model = getattr(long_models, name)(length)
    file = tmp_path / "model.pt2"
    file.write_bytes(f"{name} {length}".encode())
    patched: dict[str, Any] = {"read_graph": lambda *_: graph_to_json(model)}
    patched["dry_run"] = lambda *_: None
    for function, replacement in patched.items():
        monkeypatch.setattr(untrusted, function, replacement)
    monkeypatch.setattr(pipeline, "load", lambda *_: model)
    monkeypatch.setattr(recording, "MAX_RECORDED", 2)
    began = time.perf_counter()
    graph, _ = graphs.import_graph(file, name, ["gfx942", "gfx1100", "cpu"], None)
    held = work.claim_next(Graph.objects.filter(pk=graph.pk), "w")
    assert held is not None
    preparation.prepare(held)
    prepared_s = time.perf_counter() - began
    _built()
    graph = Graph.objects.select_related("file").get(pk=graph.pk)
    engine.scheduled.cache_clear()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    began = time.perf_counter()
    requested = bundles.graph_bundle(graph)
    known_s = time.perf_counter() - began
    steps: list[float] = []
    out = BytesIO()
    bundles.write(requested, out, lambda *_: steps.append(time.perf_counter() - began - known_s))
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    with zipfile.ZipFile(out) as archive:
        assert archive.testzip() is None
        files = len(archive.namelist())
    say(
        f"{name}: {graph.node_count} nodes, {requested.kernels} kernels for"
        f" {len(requested.targets)} targets, {files} files, {len(out.getvalue()) / 2**20:.1f} MiB;"
        f" prepared in {prepared_s:.1f} s; {known_s:.2f} s to know, {steps[0]:.2f} s to make the"
        f" code, {steps[-1] - steps[0]:.2f} s to pack; {more} MiB more;"
        f" while a page waits: {'yes' if requested.is_quick else 'no'}"
    )


def _built() -> None:
    library = artifacts.store(FILE, ".so")
    listing = artifacts.store(FILE[::-1], ".s")
    Build.objects.all().delete()
    for kernel in GeneratedKernel.objects.all():
        for target in ("gfx942", "gfx1100", "cpu"):
            factories.build(
                kernel=kernel,
                target=target,
                flags=[],
                state=State.DONE,
                code_digest=factories.digest(),
                duration_s=1.0,
                listing=listing,
                code_object=None if target == "cpu" else library,
                library=library,
            )
