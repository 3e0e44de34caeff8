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

_NAME = re.compile(
    r"v_(?P<family>mfma|smfmac|wmma|swmmac)(?:_scale)?_(?P<result>[fi]\d+|bf16)_"
    r"(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_?(?P<blocks>\d+b_)?(?P<element>\w+)"
)
_LEAST = {4: 8, 16: 16, 32: 32}  # MFMA: the fewest cycles for that number of rows

# Blocks that an instruction multiplies in parallel, by rows and k, if its name does not say.
_BLOCKS = {(4, 4): 16, (16, 4): 4, (16, 1): 4, (16, 2): 4, (32, 1): 2, (32, 2): 2, (32, 4): 2}
_SINGLE = {"f64", "xf32"}  # only the 4x4 instructions of these have blocks


@lru_cache(maxsize=512)
def cycles(mnemonic: str, processor: str, operands: str = "") -> int | None:
    """Return the cycles of its pipe; None if it is no matrix instruction. An element type without a
    rate on the target counts as f32, the slowest. ``operands`` name the formats of f8f6f4."""
    match = _NAME.match(mnemonic)
    if not match:
        return None
    gpu = processor_machine(processor)
    rates = dict(gpu.matrix_rates)
    m, n, k = int(match["m"]), int(match["n"]), int(match["k"])
    element = _element(match["element"], operands)
    operations = 2 * m * n * k * _blocks(m, k, element, match["blocks"])
    rate = rates.get(element) or rates.get("f32") or min(rates.values())
    if match["family"] in ("smfmac", "swmmac"):
        operations //= 2  # the zero half of A is not multiplied
    length = round(operations * gpu.simds / rate)
    if match["family"] in ("mfma", "smfmac"):
        return max(length, 16 if element == "f64" else _LEAST.get(m, 16))
    return max(length, 8)


def flops(mnemonic: str) -> int:
    """Return the multiplications and additions of one instruction; 0 for others."""
    match = _NAME.match(mnemonic)
    if not match:
        return 0
    m, n, k = int(match["m"]), int(match["n"]), int(match["k"])
    return 2 * m * n * k * _blocks(m, k, _element(match["element"], ""), match["blocks"])


def _element(text: str, operands: str) -> str:
    """Return f64, f32, xf32, f16, bf16, or the number of bits of a narrow element."""
    name = text.removesuffix("_1k").removesuffix("_e32").removesuffix("_e64")
    if name.startswith("f8f6f4"):
        formats = re.findall(r"\b(?:cbsz|blgp):(\d)", operands)
        narrow = len(formats) == 2 and all(int(one) >= 2 for one in formats)
        return "4" if narrow else "8"
    if name.startswith(("i8", "iu8", "fp8", "bf8")):
        return "8"
    if name.startswith(("i4", "iu4")):
        return "4"
    return name


def _blocks(m: int, k: int, element: str, named: str | None) -> int:
    if named:
        return int(named.removesuffix("b_"))
    if m == 4:
        return 4 if element == "f64" else 16
    if element in _SINGLE or (element == "f32" and k >= {16: 4, 32: 2}.get(m, 99)):
        return 1
    return _BLOCKS.get((m, k), 1)
