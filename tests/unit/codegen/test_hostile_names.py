"""Names of a model's file never become code: sources differ in comments and literals alone."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path
from typing import Any

import pytest

from scheduler import pipeline, targets
from scheduler.codegen.kernel import RenderedKernel
from scheduler.codegen.names import size_names
from scheduler.codegen.problem import problem_of
from scheduler.errors import UserError
from scheduler.ir.index.functions import FloorDiv, Mod, as_expr, symbol
from scheduler.ir.index.text import parse_expr, print_expr
from tests.support import exported
from tests.support.cpp_code import code

HOSTILE = (
    "mm\n#ifndef __HIP__\n{ system(0); } //",
    'mm\n#include "/etc/hostname"\n//',
    "mm\x00system(0);",
    "mm*/ system(0); /*",
    "mm, system(0)",
    "mm\n__import__('os').system('0')\n#",
    "mm\x0c__import__('os').system('0')",
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


def in_cutedsl(document: Any, folder: Path) -> list[RenderedKernel]:
    """The first kernel in CuteDSL of every node that has such."""
    path = exported.write(folder / "model.pt2", document)
    plan = pipeline.schedule(pipeline.lower(pipeline.load(path)))
    backend = pipeline.scheduling(plan, [targets.find("sm_90")])
    offered = (backend.candidates(node).callers for node in plan.nodes)
    found = (
        [one.kernel for one in each if one.kernel.source_file == "source.py"] for each in offered
    )
    return [each[0] for each in found if each]


def python_codes(found: list[RenderedKernel]) -> list[list[str]]:
    """What Python makes of the sources, which is no comment."""
    skipped = (tokenize.COMMENT, tokenize.NL)
    return [
        [
            token.string
            for token in tokenize.generate_tokens(io.StringIO(source).readline)
            if token.type not in skipped
        ]
        for source in (kernel.source.replace(kernel.name, "KERNEL") for kernel in found)
    ]


def codes(found: list[RenderedKernel]) -> list[list[str]]:
    return [code(kernel.source.replace(kernel.name, "KERNEL")) for kernel in found]


SYMBOLS = (
    *("return", "int", "half", "stream", "NULL", "INFINITY", "threadIdx", "KERNEL_NAME", "M", "N"),
    *("lambda", "def", "None", "True", "assert", "self", "run", "dict", "bound", "inputs", "np"),
    *(
        "i0",
        "r0",
        "x0",
        "b0",
        "d0",
        "q0",
        "c0",
        "tmp0",
        "ind0",
        "outer0",
        "row",
        "xindex",
        "kLanes",
    ),
    *("n_s0", "s1_", "_", "__proto__", "constructor", "gr\u00f6\u00dfe", "\u0434", "x" * 200),
)


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


@pytest.mark.long(but=3)
@pytest.mark.full
@pytest.mark.parametrize("model", exported.MODELS)
def test_nor_is_it_in_cutedsl_which_its_compiler_runs(model: str, tmp_path: Path) -> None:
    document = exported.MODELS[model]()
    plain = python_codes(in_cutedsl(document, tmp_path))
    for hostile in HOSTILE:
        names = {name: f"{hostile}{i}{hostile}" for i, name in enumerate(node_names(document))}
        changed = in_cutedsl(exported.renamed(document, names), tmp_path)
        assert python_codes(changed) == plain, hostile
    for name in SYMBOLS if "s0" in str(document) else ():
        changed = in_cutedsl(exported.with_symbols(document, {"s0": name}), tmp_path)
        # As a set of words: sizes stand in the order of their names, in the constants' texts too.
        inside = re.compile(rf"\b{size_names([name, 's1'])[name]}\b")
        found = [words(inside.sub("s0", " ".join(each))) for each in python_codes(changed)]
        assert found == [words(" ".join(each)) for each in plain], name


def words(text: str) -> list[str]:
    return sorted(re.findall(r"\w+|[^\w\s]", text))


@pytest.mark.full(but=["gemm"])
@pytest.mark.parametrize("model", [name for name in exported.MODELS if name != "convolution"])
def test_sizes_may_be_called_anything(model: str, tmp_path: Path) -> None:
    """The kernel is the same but for the name, and the model's own name is kept for people."""
    document = exported.MODELS[model]()
    plain = [sorted(each) for each in codes(kernels(document, tmp_path))]
    for name in SYMBOLS:
        changed = kernels(exported.with_symbols(document, {"s0": name}), tmp_path)
        inside = size_names([name, "s1"])[name]
        found = [["s0" if word == inside else word for word in each] for each in codes(changed)]
        assert [sorted(each) for each in found] == plain, name


def test_a_problem_tells_sizes_from_loops(tmp_path: Path) -> None:
    """A size that is called as loops are in a problem's text makes no other problem's digest."""
    texts = set()
    for name in ("s0", "i0", "i1", "ind0"):
        document = exported.with_symbols(exported.softmax(), {"s0": name})
        graph = pipeline.load(exported.write(tmp_path / "model.pt2", document))
        plan = pipeline.schedule(pipeline.lower(graph))
        problem = problem_of(plan.nodes[0], plan.lowered)
        assert set(problem.symbols) == {name, "s1"}
        texts.add(problem.text.replace(f"size.{name}", "s0"))
    assert len(texts) == 1


def test_sizes_of_a_source_have_a_name_each() -> None:
    names = size_names([*SYMBOLS, "n_x", "\u00e4", "\u00f6", "s0", "u12", "a" * 150, "a" * 151])
    assert (names["s0"], names["u12"], names["run"]) == ("s0", "u12", "n_run")
    assert len(set(names.values())) == len(names)
    for name in names.values():
        assert name.isidentifier() and name.isascii() and len(name) < 120
        assert "KERNEL_NAME" not in name


@pytest.mark.parametrize("name", SYMBOLS)
def test_expressions_over_such_sizes_travel_as_text(name: str) -> None:
    size = symbol(name)
    expr = 4 * size * FloorDiv(size + 3, as_expr(2)) - Mod(size, as_expr(5))
    assert parse_expr(print_expr(expr)) == expr


@pytest.mark.parametrize(
    "name", ["a b", "a-b", "1a", "", "a.b", "Max", "x" * 201, "a\u00b7", "\uff53"]
)
def test_what_is_no_name_of_a_size_is_refused_in_a_line(name: str, tmp_path: Path) -> None:
    document = exported.with_symbols(exported.gemm(), {"s0": name})
    with pytest.raises(UserError, match="not a symbol name"):
        kernels(document, tmp_path)
