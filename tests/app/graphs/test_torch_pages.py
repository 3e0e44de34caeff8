"""What a graph's page and its JSON say of the comparison with torch."""

from __future__ import annotations

from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import strip_tags

from codegen_app.graphs.models import Graph
from codegen_app.graphs.pages.graph.query import graph_page
from codegen_app.workers.models import State
from tests.app.graphs.test_torch_comparisons import prepared
from tests.support.pages_world import finding, make_torch_comparison
from tests.support.queries import queries_of

pytestmark = pytest.mark.django_db


_WRONG = {"passed": False, "max_error": 0.25, "bound": 1e-5, "ratio": 2.5e4}
_LEFT_OUT = {"passed": None, "max_error": 0.0, "bound": 0.0, "ratio": 0.0}
_RANDOM = "the model draws random numbers, which differ from torch's"


@pytest.mark.parametrize(
    ("fields", "outcome", "said"),
    [
        (
            {"findings": [finding("y"), finding("z", ratio=0.002)]},
            "agrees",
            "torch 2.13.0 agrees: 2 of 2 outputs, at most 0.08 of the bound, at s0=64",
        ),
        (
            {"findings": [finding("y", ratio=0.0)], "bindings": {}},
            "agrees",
            "torch 2.13.0 agrees: 1 of 1 output, no difference",
        ),
        (
            {"findings": [finding("y"), finding("z", **_LEFT_OUT | {"detail": "no reference: u"})]},
            "agrees in part",
            "torch 2.13.0 agrees in part: 1 of 2 outputs, at most 0.08 of the bound, at s0=64;"
            " not compared: z: no reference: u",
        ),
        (
            {"findings": [finding("y", **_WRONG), finding("z")]},
            "differs",
            "torch 2.13.0 differs: 1 of 2 outputs, at s0=64 y: error 2.50e-01, bound 1.00e-05",
        ),
        (
            {
                "findings": [
                    finding("", passed=False, max_error=None, ratio=None, detail="2, not 3")
                ]
            },
            "differs",
            "torch 2.13.0 differs: 1 of 1 output, at s0=64 2, not 3",
        ),
        (
            {"findings": [finding("", **_LEFT_OUT | {"detail": _RANDOM})]},
            "not compared",
            f"not compared with torch 2.13.0: {_RANDOM}",
        ),
        (
            {"findings": []},
            "not compared",
            "not compared with torch 2.13.0: the model has no outputs",
        ),
        (
            {"state": State.REJECTED, "reason": "takes longer than 300 s"},
            "not compared",
            "not compared with torch: takes longer than 300 s",
        ),
        (
            {"state": State.CANCELLED, "reason": "cancelled"},
            "not compared",
            "not compared with torch: cancelled",
        ),
        (
            {"state": State.QUARANTINED, "reason": "internal error"},
            "not compared",
            "not compared with torch: internal error",
        ),
        (
            {"state": State.QUEUED},
            "waits",
            "waiting for a worker with torch: none online; start one with torch",
        ),
        (
            {"state": State.RUNNING, "lease_until": timezone.now() + timedelta(days=1)},
            "running",
            "being compared with torch",
        ),
    ],
)
def test_the_page_and_its_json_say_what_became_of_it(
    fields: dict[str, Any], outcome: str, said: str, reader: Client
) -> None:
    graph = prepared()
    row = make_torch_comparison(graph, **fields)
    assert text_of(reader, graph) == said
    given = reader.get(f"{graph.get_absolute_url()}.json").json()["torch"]
    assert given["outcome"] == outcome
    assert ": ".join(filter(None, (given["headline"], given["detail"]))) in said
    assert given["findings"] == (row.findings if row.state == State.DONE else [])


def text_of(reader: Client, graph: Graph) -> str:
    """The words of the page's part, which stands before the drawing."""
    page = reader.get(graph.get_absolute_url()).content.decode()
    _, there, after = page.partition('<div id="graph-torch" data-live-part>')
    part = after.partition('<div class="graph-split">')[0]
    return " ".join(unescape(strip_tags(part)).split()) if there else ""


def test_of_many_outputs_that_differ_the_page_names_a_few(reader: Client) -> None:
    names = [f"y{number}" for number in range(40)]
    graph = prepared(outputs=names)
    make_torch_comparison(graph, findings=[finding(name, **_WRONG) for name in names])
    said = text_of(reader, graph)
    assert "40 of 40 outputs" in said
    assert said.count("error") == 5
    assert "and 35 more" in said


def test_a_graph_without_a_comparison_says_how_to_come_by_one(
    reader: Client, settings: Any
) -> None:
    assert text_of(reader, prepared(state=State.QUEUED)) == ""
    graph = prepared()
    assert "disabled on this site (KILN_TORCH=0)" in text_of(reader, graph)
    settings.COMPARE_WITH_TORCH = True
    assert "import the file again" in text_of(reader, graph)


def test_the_page_asks_nothing_more_for_it() -> None:
    without, with_it = prepared(), prepared()
    make_torch_comparison(with_it)
    assert queries_of(graph_page, without.pk) == queries_of(graph_page, with_it.pk)
