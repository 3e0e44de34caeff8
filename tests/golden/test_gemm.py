"""The text of one rendered matrix product, whole: what a change of the template changes.

After a change that is meant, ``python -m tests.golden.test_gemm`` writes the text anew.
"""

from __future__ import annotations

from pathlib import Path

from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.ir.dtypes import DType
from scheduler.targets import find
from tests.unit.matrix.contractions import matmul

GOLDEN = Path(__file__).with_name("addmm_f16.hip")
TARGETS = tuple(find(name) for name in ("gfx942", "gfx1100", "cpu"))


def rendered() -> str:
    """addmm 2240x256 @ 256x2048 with a bias of [2048], f16."""
    schedule = matmul(2240, 2048, 256, DType.F16, bias=[2048])
    return ROCmCPPScheduling(schedule, TARGETS).default(schedule.nodes[0]).kernel.source


def test_the_text_of_a_matrix_product() -> None:
    assert rendered().splitlines() == GOLDEN.read_text().splitlines()


if __name__ == "__main__":
    GOLDEN.write_text(rendered())
