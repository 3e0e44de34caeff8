"""What the name of a matrix instruction says: its shape and its types.

Blocks: the number of products that an instruction computes in parallel, from the CDNA instruction
set architecture documents.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_NAME = re.compile(
    r"v_(?P<family>mfma|smfmac|wmma|swmmac)(?:_scale)?_(?P<result>[fi]\d+|bf16)_"
    r"(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_?(?:(?P<blocks>\d+)b_)?(?P<element>\w+)"
)
# By rows and k, if the name does not say.
_BLOCKS = {(4, 4): 16, (16, 4): 4, (16, 1): 4, (16, 2): 4, (32, 1): 2, (32, 2): 2, (32, 4): 2}
_SINGLE = {"f64", "xf32"}  # only the 4x4 instructions of these have blocks
_SINGLE_FROM_K = {("f32", 16): 4, ("f32", 32): 2, ("bf16", 32): 4}


@dataclass(frozen=True)
class MatrixShape:
    """D = A B + C of ``blocks`` products: A [m, k], B [k, n]. ``element`` is as in the name:
    f16, bf16_1k, fp8_bf8 ..., ``result`` the type of C and D."""

    family: str
    result: str
    m: int
    n: int
    k: int
    blocks: int
    element: str

    @property
    def is_sparse(self) -> bool:
        """Whether A has two of every four k."""
        return self.family in ("smfmac", "swmmac")

    @property
    def elements(self) -> tuple[str, str]:
        """The types of A and of B: the same, or fp8 and bf8."""
        parts = self.element.removesuffix("_1k").split("_")
        return parts[0], parts[-1]

    @property
    def flops(self) -> int:
        """Multiplications and additions, also those by A's zeros."""
        return 2 * self.m * self.n * self.k * self.blocks


@lru_cache(maxsize=512)
def matrix_shape(mnemonic: str) -> MatrixShape | None:
    """Return the shape of a matrix instruction; None for others."""
    match = _NAME.match(mnemonic)
    if not match:
        return None
    m, n, k = int(match["m"]), int(match["n"]), int(match["k"])
    element = re.sub(r"_e(?:32|64)$", "", match["element"])
    if match["blocks"]:
        blocks = int(match["blocks"])
    elif m == 4:
        blocks = 4 if element == "f64" else 16
    elif element in _SINGLE or k >= _SINGLE_FROM_K.get((element, m), 1000):
        blocks = 1
    else:
        blocks = _BLOCKS.get((m, k), 1)
    return MatrixShape(match["family"], match["result"], m, n, k, blocks, element)
