"""Kernels of several launches, whose device functions pass results on in a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.codegen.rocm.jinja_templates import kernel_template
from scheduler.codegen.rocm.loop import LoopTemplate
from scheduler.codegen.rocm.reduction.configs import Split
from scheduler.codegen.template import RenderedTemplate
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import as_expr


@dataclass(frozen=True)
class DeviceFunction:
    """A device function with its launch: ``blocks`` blocks for all rows, times ``parts``.

    If unknown sizes decide whether columns are read in packs, ``body`` runs if the condition
    ``aligned`` holds and ``strided`` if not. A function that ``follows`` may begin before the
    launch before it has ended; one that ``leads`` allows that. ``unit`` is the steps of which a
    block's part of a row is a multiple, in C++ constants or a number.
    """

    name: str
    about: str
    body: str
    split: Split
    blocks: Expr
    parts: int
    lds_bytes: int = 0
    loops: bool = True
    unit: int = 1
    aligned: str = ""
    strided: str = ""
    follows: bool = False
    leads: bool = False


def render_functions(
    template: LoopTemplate,
    source: str,
    functions: Sequence[DeviceFunction],
    threads: int,
    split: int,
    row_bytes: int,
    **context: object,
) -> RenderedTemplate:
    """Return a kernel that launches the functions in order. With more than one block per row
    (``split``) its workspace has ``row_bytes`` bytes per row. ``context`` holds the other variables
    of the Jinja template ``source``."""
    rows = template.nest.outer_numel
    workspace = rows * row_bytes if split > 1 else as_expr(0)
    text = kernel_template(source).render(
        header=template.header(),
        index_type=template.index_type,
        threads=threads,
        split=split,
        functions=[{**vars(f), "blocks": template.host(f.blocks).grid} for f in functions],
        parameters=template.parameters,
        workspace=template.host(workspace).grid if split > 1 else "",
        xnumel=template.index(rows),
        rnumel=template.index(template.nest.inner_numel),
        host=template.host(rows),
        **context,
    )
    launches = (
        template.make_launch(f.name, f.blocks, threads, f.lds_bytes, f.parts, workspace=split > 1)
        for f in functions
    )
    return template.finish_render(text, launches, workspace)
