"""Elements of 8 bits that become wider ones in registers: every code, as a product reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import from_bits

CODES = np.arange(256, dtype=np.uint8)
NARROW = (DType.I8, DType.U8, *(dtype for dtype in DType if dtype.is_float8))
_SOURCE = """
#include <kiln/converted.h>
template <typename To, typename From>
__global__ void convert(const From* from, float* to) {
  using namespace kiln;
  using Held = kiln::Held<From>;
  const auto codes = reinterpret_cast<const Vec<Held, 8>*>(from)[threadIdx.x];
  const auto made = operand::converted<To, From, 8>(codes);
  const auto one = operand::converted<To, From, 1>(Vec<Held, 1>(codes[3]));
  for (int i = 0; i < 8; ++i) to[threadIdx.x * 8 + i] = to_float(i == 3 ? one[0] : made[i]);
}
"""


def _source() -> str:
    cases = "".join(
        f"""
      if (which == {2 * at + half})
        hipLaunchKernelGGL((convert<{to.cpp}, {dtype.cpp}>), dim3(1), dim3(32), 0, stream,
                           (const {dtype.cpp}*)from, (float*)to);"""
        for at, dtype in enumerate(NARROW)
        for half, to in enumerate((DType.F16, DType.BF16))
    )
    return (
        _SOURCE
        + f"""
    EXPORT go(void* from, void* to, int which, size_t*, uint8_t*, hipStream_t stream) {{
      {cases}
      return hipGetLastError();
    }}"""
    )


@pytest.mark.parametrize("to", [DType.F16, DType.BF16], ids=lambda dtype: dtype.label)
@pytest.mark.parametrize("dtype", NARROW, ids=lambda dtype: dtype.label)
def test_every_code_becomes_the_number_that_it_means(
    dtype: DType, to: DType, run: Callable[..., None]
) -> None:
    found = np.zeros(256, np.float32)
    run(_source(), "go", CODES, found, 2 * NARROW.index(dtype) + (to is DType.BF16))
    expected: Any = (
        from_bits(CODES, dtype) if dtype.is_float8 else CODES.view(dtype.numpy).astype(np.float32)
    )
    if to is DType.F16:
        with np.errstate(over="ignore"):
            expected = np.asarray(expected, np.float32).astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(found, expected)
