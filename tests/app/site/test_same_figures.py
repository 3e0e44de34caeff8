"""A figure that stands on several pages is the same on all of them, in a small world and in the
demo's: every page's JSON view is read, and those that its rows lead to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from codegen_app.tracking.services import (
    alert_pipeline,
    detection,
    generated_history,
    result_import,
)
from scheduler import samples
from scheduler.results import file as results_file
from tests.app import factories
from tests.support import every_page
from tests.support.pages_world import World, make_world
from tests.support.same_figures import SameFigures

pytestmark = pytest.mark.django_db

MODEL = "gpt2_2layer"
#: Pages of one kind (``/nodes/…``) that are read.
PER_KIND = 4


def walk(client: Client) -> SameFigures:
    """The figures of every page, and of pages that their rows lead to."""
    figures = SameFigures()
    waiting = list(every_page.available()[0].values())
    read: set[str] = set()
    kinds: Counter[str] = Counter()
    for address in waiting:
        path, _, query = address.partition("?")
        kind = path.split("/")[1]
        is_listed = len(read) < len(every_page.PAGES)
        if address in read or (kinds[kind] >= PER_KIND and not is_listed):
            continue
        read.add(address)
        kinds[kind] += 1
        answer = client.get(f"{'/overview' if path == '/' else path}.json?{query}")
        if answer.status_code == 200 and answer.headers["Content-Type"] == "application/json":
            figures.add(address, answer.json())
            waiting += addresses(answer.json())
    return figures


def addresses(view: Any) -> Iterator[str]:
    """The addresses in the rows of a JSON view."""
    if isinstance(view, list):
        for row in view:
            yield from addresses(row)
    elif isinstance(view, dict):
        for name, value in view.items():
            if name == "url" and str(value).startswith("/"):
                yield value.partition("#")[0]
            else:
                yield from addresses(value)


def shared_names(figures: SameFigures) -> set[tuple[str, str]]:
    """Figures that stand on several pages, by the kind of what they are of."""
    return {(figure.of.partition("/")[0], figure.name) for figure in figures.shared}


OF_KERNELS = {
    *(("kernels", name) for name in ("rank", "share", "total_ns", "least_ns", "median_ns", "n")),
    *(("nodes", name) for name in ("share", "median_ns")),
    *(("graphs", name) for name in ("measured", "total_ns", "state")),
    *(("runs", name) for name in ("state", "progress")),
}
OF_CHANGES = {
    *(("alerts", name) for name in ("state", "cause", "n_series", "worst ratio", "worst low")),
    *(("changes", name) for name in ("ratio", "low", "high", "n_before", "n_after", "cause")),
    *(("series", name) for name in ("points", "generated", "suspected_n")),
}


def test_a_difference_is_found() -> None:
    """Of the same kernel, graph and bucket; another bucket may have another share."""
    figures = SameFigures()
    for page, share, bucket in (("/a", 0.5, "cpu"), ("/b", 0.25, "cpu"), ("/b", 0.7, "gpu")):
        row = {"url": "/kernels/k?node=1", "share": share, "calls": 1}
        where = {"name": bucket, "device_name": bucket, "target": bucket, "bindings": {}}
        figures.add(page, {"graph": 1, "bucket": where, "kernels": [row]})
    (line,) = figures.contradictions
    assert "name='share', graph='1', bucket='cpu'" in line
    assert line.endswith("{0.5: ['/a'], 0.25: ['/b']}")


def test_in_a_small_world(admin_client: Client, world: World, code_cache: Path) -> None:
    make_world(code_cache, "larger", layers=3, candidates=4, compiled=2)
    every_page.furnish(world.graph)
    figures = walk(admin_client)
    assert figures.contradictions == []
    assert shared_names(figures) >= OF_KERNELS | OF_CHANGES


@pytest.mark.full
@pytest.mark.django_db(transaction=True)  # heartbeats come over a connection of their own
def test_in_the_demos_world(admin_client: Client) -> None:
    """A model with the recorded results and the history that the package has of it, and a
    generated history; alerts are raised as the site does."""
    graph = factories.prepared_graph(MODEL, MODEL)
    for path in samples.results():
        if path.name.startswith((f"{MODEL}-", f"history-{MODEL}-")):
            result_import.record(results_file.read(path), path.name, None, with_sources=True)
    generated_history.store(series=2)
    while detection.detect_changes():
        pass
    alert_pipeline.process_pending()
    figures = walk(admin_client)
    assert figures.contradictions == []
    assert shared_names(figures) >= OF_KERNELS | OF_CHANGES
    assert {figure.graph for figure in figures.shared} >= {str(graph.pk)}
