"""Names of a model's file never become code: sources differ in comments and literals alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scheduler import pipeline, targets
from scheduler.codegen.kernel import RenderedKernel
from tests.support import exported
from tests.support.cpp_code import code

HOSTILE = (
    "mm\n#ifndef __HIP__\n{ system(0); } //",
    'mm\n#include "/etc/hostname"\n//',
    "mm\x00system(0);",
    "mm*/ system(0); /*",
    "mm, system(0)",
    "mm\\",
    "mm??/",
    "mm\r#define float double\r//",
    "mm\N{LINE SEPARATOR}system(0);",
    "mm\N{RIGHT-TO-LEFT OVERRIDE}",
    "CONFIGURATION",
    "KERNEL_NAME",
    "{{ 7 * 7 }}",
)


def kernels(document: Any, folder: Path) -> list[RenderedKernel]:
    """The default kernel of every node."""
    path = exported.write(folder / "model.pt2", document)
    plan = pipeline.schedule(pipeline.lower(pipeline.load(path)))
    backend = pipeline.scheduling(plan, [targets.find("gfx942")])
    return [backend.default(node).kernel for node in plan.nodes]


def codes(found: list[RenderedKernel]) -> list[list[str]]:
    return [code(kernel.source.replace(kernel.name, "KERNEL")) for kernel in found]


def node_names(document: Any) -> list[str]:
    return [node["name"] for node in document["graph_module"]["graph"]["nodes"]]


@pytest.mark.parametrize("model", exported.MODELS)
def test_a_nodes_name_is_never_code(model: str, tmp_path: Path) -> None:
    document = exported.MODELS[model]()
    plain = codes(kernels(document, tmp_path))
    for hostile in HOSTILE:
        names = {name: f"{hostile}{i}{hostile}" for i, name in enumerate(node_names(document))}
        changed = kernels(exported.renamed(document, names), tmp_path)
        assert codes(changed) == plain, hostile
        for kernel in changed:
            computed = {node for origin in kernel.line_origins for node in origin.nodes}
            assert computed <= set(kernel.nodes) <= set(names.values())
