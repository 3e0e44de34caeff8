"""The texts of rendered matrix products, whole: what a change of a template changes.

After a change that is meant, ``python -m tests.golden.test_gemm`` writes the texts anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.ir.dtypes import DType
from scheduler.targets import find
from tests.support.cutedsl_products import PRODUCTS
from tests.unit.matrix.contractions import matmul

HERE = Path(__file__).parent
TARGETS = tuple(find(name) for name in ("gfx942", "gfx1100", "cpu"))


def addmm() -> str:
    """addmm 2240x256 @ 256x2048 with a bias of [2048], f16."""
    schedule = matmul(2240, 2048, 256, DType.F16, bias=[2048])
    return ROCmCPPScheduling(schedule, TARGETS).default(schedule.nodes[0]).kernel.source


RENDERED = {
    "addmm_f16.hip": addmm,
    # Three of one input in CuteDSL, parts of k in different blocks.
    "linears_f16.py.txt": lambda: PRODUCTS["three, split"].caller().kernel.source,
    # An operand that is packed before, an epilogue through an index.
    "gathered_bf16.py.txt": lambda: PRODUCTS["computed and gathered"].caller().kernel.source,
}


@pytest.mark.parametrize("name", RENDERED)
def test_the_text_of_a_matrix_product(name: str) -> None:
    assert RENDERED[name]().splitlines() == (HERE / name).read_text().splitlines()


if __name__ == "__main__":
    for name, text in RENDERED.items():
        (HERE / name).write_text(text())
