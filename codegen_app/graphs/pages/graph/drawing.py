"""What the script of the graph's page draws: the kernels, or the calls of the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codegen_app.graphs.pages.graph.layout import Box, Layout, layered_layout
from codegen_app.graphs.pages.graph.query import GraphPage, ScheduledRow, ViewNode


@dataclass(frozen=True)
class DrawnBox:
    """A box of the drawing. Selecting it highlights the boxes of the same ``group``: calls of one
    kernel, or nodes that one kernel computes. ``parts`` names it in the other drawing; ``time_ns``
    and ``share`` are None if it was not measured; ``is_timed`` says whether it has a kernel."""

    kind: str
    label: str
    module: str
    url: str
    group: str
    parts: tuple[str, ...]
    tooltip: str
    is_timed: bool = False
    time_ns: float | None = None
    share: float | None = None


@dataclass(frozen=True)
class Drawing:
    """The boxes by name, and their layout."""

    boxes: Mapping[str, DrawnBox]
    layout: Layout


def draw_kernels(page: GraphPage) -> Drawing:
    """Return the drawing of the scheduled nodes."""
    names = {row.id: row.name for row in page.scheduled}
    return Drawing(
        {row.name: _kernel_box(row) for row in page.scheduled},
        layered_layout(
            [Box(row.name, row.module) for row in page.scheduled],
            [(names[before], row.name) for row in page.scheduled for before in row.after],
        ),
    )


def draw_nodes(page: GraphPage) -> Drawing:
    """Return the drawing of the model's own nodes."""
    scheduled = {row.id: row for row in page.scheduled}
    return Drawing(
        {node.name: _node_box(node, scheduled) for node in page.nodes},
        layered_layout(
            [Box(node.name, node.module) for node in page.nodes],
            [(name, node.name) for node in page.nodes for name in node.inputs],
        ),
    )


def selected_box(drawing: Drawing, name: str, part: str) -> str:
    """Return the box of that name, else the first one that has this part; "" if there is none."""
    if name in drawing.boxes:
        return name
    return next((name for name, box in drawing.boxes.items() if part in box.parts), "")


def _kernel_box(row: ScheduledRow) -> DrawnBox:
    serving = row.serving
    return DrawnBox(
        kind=row.kind,
        label=row.op,
        module=row.module,
        url=row.url,
        group=serving.kernel if serving else "",
        parts=row.graph_nodes,
        tooltip=f"{row.module}\n{row.op} {row.problem}\n{', '.join(row.graph_nodes)}",
        is_timed=serving is not None,
        time_ns=serving.median_ns if serving else None,
        share=row.share,
    )


def _node_box(node: ViewNode, scheduled: Mapping[int, ScheduledRow]) -> DrawnBox:
    computed_by = [scheduled[key].name for key in node.scheduled]
    return DrawnBox(
        kind=node.kind,
        label=node.op,
        module=node.module,
        url=scheduled[node.scheduled[0]].url if node.scheduled else "",
        group=computed_by[0] if computed_by else "",
        parts=tuple(computed_by),
        tooltip=f"{node.module}\n{node.op}\n{node.source}",
    )
