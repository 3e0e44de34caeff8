"""Matrix products whose rendered texts are recorded whole."""

from __future__ import annotations

from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.ir.dtypes import DType
from scheduler.targets import find
from tests.support.cutedsl_products import PRODUCTS
from tests.unit.matrix.contractions import matmul

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
