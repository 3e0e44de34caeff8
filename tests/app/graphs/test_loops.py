"""A model with a loop: its kernels among the scheduled nodes, and what pages say of the loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from codegen_app.graphs.models import Graph, TemplateNode
from codegen_app.graphs.pages.graph.query import graph_page
from codegen_app.graphs.pages.graphs.query import graph_rows
from codegen_app.graphs.services import imports as graphs
from codegen_app.kernels.models import KernelUse
from codegen_app.kernels.services import preparation
from codegen_app.tuning.pages.node.query import node_page
from codegen_app.workers import work
from codegen_app.workers.models import State

# Heartbeats come over a connection of their own and must see the rows.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.apart]


def loops(folder: Path) -> Graph:
    """A cell over 100 slices within a while_loop, prepared."""
    torch = pytest.importorskip("torch")

    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 8)

        def forward(self, x: Any) -> Any:
            def step(hidden: Any, x: Any) -> Any:
                hidden = torch.tanh(self.layer(hidden) + x)
                return hidden, hidden * 2

            def body(i: Any, x: Any) -> Any:
                return i + 1, torch._higher_order_ops.scan(step, x[0], x)[1]

            return torch._higher_order_ops.while_loop(
                lambda i, x: i < 3, body, (torch.tensor(0), x)
            )

    torch.export.save(torch.export.export(Model(), (torch.randn(100, 4, 8),)), folder / "m.pt2")
    made, _ = graphs.import_graph(folder / "m.pt2", "loops", ["gfx942"], None)
    held = work.claim_next(Graph.objects.filter(pk=made.pk), "w")
    assert held is not None
    preparation.prepare(held)
    made.refresh_from_db()
    assert (made.state, made.reason) == (State.DONE, "")
    return made


@pytest.mark.full
def test_a_loop_leads_to_its_kernels_and_they_to_it(tmp_path: Path, reader: Client) -> None:
    graph = loops(tmp_path)
    page = graph_page(graph.pk)
    outer, inner, inner_end, outer_end = [row for row in page.scheduled if row.kind == "loop"]
    assert (inner.loop, inner_end.loop, outer.loop) == (outer.name, outer.name, "")
    assert (inner_end.name, outer_end.name) == (f"{inner.name}_end", f"{outer.name}_end")
    assert "as long as the model's condition holds" in outer.extern_reason
    assert inner.extern_reason.endswith("once a step: 100 times.")
    body = [row for row in page.scheduled if inner.position < row.position < inner_end.position]
    assert any(row.kind == "gemm" for row in body)
    assert {row.loop for row in body} == {inner.name}
    assert all(row.serving and row.problem for row in body)
    assert page.has_loops
    assert page.measured.with_kernel == len(page.scheduled) - 4
    (called,) = (node for node in page.nodes if node.op.endswith("while_loop"))
    assert (called.kind, called.scheduled[0]) == ("loop", outer.id)
    assert {row.id for row in body} <= set(called.scheduled)

    shown = node_page(inner.id)
    assert [one.url for one in shown.body] == [row.url for row in body]
    assert shown.loop is not None
    assert shown.loop.url == outer.url
    kernel = node_page(body[0].id)
    assert kernel.loop is not None
    assert (kernel.loop.name, kernel.body) == (inner.name, ())
    (listed,) = graph_rows(Graph.objects.all())
    assert listed.externs == 0
    assert "while more_0:" in graph.wrapper
    uses = KernelUse.objects.filter(is_default=True).values_list("template_node__name", flat=True)
    marks = TemplateNode.objects.filter(kind=TemplateNode.LOOP).values_list("name", flat=True)
    assert not set(uses) & set(marks)

    text = reader.get(body[0].url).content.decode()
    assert "Runs once per iteration of a loop, higher_order.scan" in text
    text = reader.get(inner.url).content.decode()
    assert "Loop body" in text
    assert "No kernel generated" not in text
    text = reader.get(page.url).content.decode()
    assert f"in {inner.name}" in text
