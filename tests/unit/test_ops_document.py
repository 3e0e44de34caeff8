"""docs/ops.md says what the rows say, and what torch says of Core ATen."""

from __future__ import annotations

import pytest

from scheduler.ir.ops import functional_target
from scheduler.lowering.ops import ROWS
from scheduler.lowering.ops.table import DOCUMENT, catalogue, render_table, stale_lines, table

# Core ATen's own form with ``out``: torch.export gives the functional one.
WITHOUT = {"aten.atan2.out"}


def test_the_document_is_current() -> None:
    """``python -m scheduler.lowering.ops.table`` writes it."""
    assert list(stale_lines(DOCUMENT.read_text())) == []


def test_a_document_that_is_not_current_is_noticed() -> None:
    line = next(line for line in render_table().splitlines() if line.startswith("| `abs`"))
    (lacks,) = stale_lines(render_table().replace(line + "\n", ""))
    assert lacks == f"lacks: {line}"
    (stale,) = stale_lines(render_table() + "| `nowhere` |\n")
    assert "nowhere" in stale


def test_every_op_of_core_aten_has_a_row() -> None:
    known = {target for row in ROWS for target in row.targets}
    missing = {t for t in catalogue()["core"] if functional_target(t) not in known}
    assert missing - WITHOUT == set()


def test_core_aten_is_what_torch_says() -> None:
    torch = pytest.importorskip("torch")
    if torch.__version__.partition("+")[0] != catalogue()["torch"]:
        pytest.skip(f"the catalogue is of torch {catalogue()['torch']}")
    from tests.benchmarks.opinfo.catalogue import core

    assert core() == catalogue()["core"]


def test_the_table_says_what_becomes_of_an_op() -> None:
    rows = {row.name: row for row in table()}
    assert rows["aten.mm"].kernel == "matmul"
    assert rows["aten.mm"].core
    assert rows["aten.permute"].kernel == "view"
    assert {"f16", "f32"} <= set(rows["aten.mm"].dtypes)
    assert "softmax" in rows["aten._softmax"].entries
    assert all(row.kernel or row.reason for row in rows.values() if row.known)
