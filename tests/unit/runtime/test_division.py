"""``kiln/divide.h``: indices divided by multiplication, against division."""

from __future__ import annotations

import numpy as np

from tests.unit.runtime.test_emulation import Run, kernel

BODY = """
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  const int32_t d = divisors[i], most = 0x7fffffff;
  auto check = [&](int64_t at) {
    if (at < 0 || at > most) return;
    const int32_t a = int32_t(at);
    const int64_t wide = at << 20 | 5, wide_d = int64_t(d) << 31;
    const bool right = kiln::quotient(a, d, by[i]) == a / d &&
                       kiln::remainder(a, d, by[i]) == a % d &&
                       kiln::quotient(at, d, by[i]) == a / d &&
                       kiln::quotient(wide, int64_t(d), by[i]) == wide / d &&
                       kiln::remainder(at, wide_d, by[i]) == at % wide_d;
    if (!right) wrong[i] = a + 1;
  };
  for (int64_t near = -2; near <= 2; ++near) {
    check(most + near);
    check((most / d) * int64_t(d) + near);
    for (int64_t times = 0; times * d <= most; times = times * 3 + 1) check(times * d + near);
  }
"""


def test_every_kind_of_dividend_and_divisor(run: Run) -> None:
    """Around multiples of a divisor, and the largest dividends; of divisors that are powers of two,
    their neighbours, and any: in 32 bits, in 64, and where 64 are needed."""
    near = {(1 << n) + d for n in range(31) for d in (-1, 0, 1)} | {(1 << 31) - 1, 641, 6_700_417}
    some = np.random.default_rng(1).integers(1, 1 << 31, 300).tolist()
    divisors = np.array(sorted(d for d in near | set(some) if d > 0), np.int32)
    by = np.array([(1 << 62) // int(d) + 1 for d in divisors], np.int64)
    wrong = np.zeros(len(divisors), np.int32)
    parameters = "const int32_t* divisors, const int64_t* by, int32_t* wrong, int n"
    source = "#include <kiln/divide.h>\n" + kernel(BODY, parameters, "(n + 63) / 64", "64")
    run(source, "go", divisors, by, wrong, len(divisors))
    assert not wrong.any(), divisors[wrong != 0]
