"""How many cycles a matrix instruction occupies the matrix pipe of its SIMD.

A pass is 4 cycles. MFMA: "passes" of the CDNA instruction set architecture documents and of LLVM's
SISchedule.td: the operations over the rate of the white papers' tables (per clock and compute unit,
four SIMDs), but at least 8, 16 and 32 cycles for 4, 16 and 32 rows: an instruction with half of the
k that another one has for its element type is no faster. WMMA: by the rates of the RDNA 3 and RDNA
4 documents, two SIMDs.
"""

from __future__ import annotations

import re
from functools import lru_cache

from scheduler.cycles.constants import processor_machine
from scheduler.isa.rocm.instruction_set.matrix import matrix_shape
from scheduler.targets.generations import amd_gpu

_LEAST = {4: 8, 16: 16, 32: 32}  # MFMA: the fewest cycles for that number of rows


@lru_cache(maxsize=512)
def cycles(mnemonic: str, processor: str, operands: str = "") -> int | None:
    """Return the cycles of its pipe; None if it is no matrix instruction. An element type without a
    rate on the target counts as f32, the slowest. ``operands`` name the formats of f8f6f4."""
    shape = matrix_shape(mnemonic)
    if shape is None:
        return None
    rates = dict(processor_machine(processor).matrix_rates)
    element = _rate_key(shape.element, operands)
    rate = rates.get(element) or rates.get("f32") or min(rates.values())
    operations = shape.flops // 2 if shape.is_sparse else shape.flops
    length = round(operations * amd_gpu(processor).simds_per_cu / rate)
    if shape.family in ("mfma", "smfmac"):
        return max(length, 16 if element == "f64" else _LEAST.get(shape.m, 16))
    return max(length, 8)


def flops(mnemonic: str) -> int:
    """Return the multiplications and additions of one instruction; 0 for others."""
    shape = matrix_shape(mnemonic)
    return shape.flops if shape else 0


def _rate_key(element: str, operands: str) -> str:
    """Return f64, f32, xf32, f16, bf16, or the number of bits of a narrow element."""
    if element.startswith("f8f6f4"):
        formats = re.findall(r"\b(?:cbsz|blgp):(\d)", operands)
        return "4" if len(formats) == 2 and all(int(code) >= 2 for code in formats) else "8"
    if element.startswith(("i8", "iu8", "fp8", "bf8")):
        return "8"
    if element.startswith(("i4", "iu4")):
        return "4"
    return element.removesuffix("_1k")
