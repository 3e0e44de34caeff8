"""kiln/fast.h keeps the errors that docs/math.md states: on the emulation, and in the instructions
that AMD's GPUs run."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build, Toolchain
from scheduler.build.sandbox_paths import HEADER_ROOT
from scheduler.isa.rocm.emulator.launch import Launch
from scheduler.isa.rocm.emulator.memory import Memory
from scheduler.isa.rocm.emulator.program import program_of
from scheduler.isa.rocm.emulator.run import run

Floats = npt.NDArray[np.float32]
Exact = npt.NDArray[np.float64]

_FUNCTIONS: dict[str, Callable[..., Exact]] = {
    "exp2": np.exp2,
    "exp": np.exp,
    "expm1": np.expm1,
    "log2": np.log2,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "divide": np.true_divide,
    "reciprocal": np.reciprocal,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-np.abs(x))),
    "tanh": np.tanh,
    "erf": special.erf,
    "one_plus_tanh": lambda x: 2 / (1 + np.exp(-2 * x)),
    "one_plus_erf": lambda x: special.erfc(-x),
}
# What an instruction may flush (a sum of two of them for roots of what is small).
_FLUSHED = 2.0**-126


def _power(text: str) -> float:
    return 2.0 ** int(text.strip().removeprefix("2^")) if text.strip() else 0.0


def _stated() -> dict[str, tuple[float, float]]:
    """Relative and absolute error of each function, from the table in docs/math.md."""
    text = (HEADER_ROOT.parents[2] / "docs" / "math.md").read_text()
    found = {}
    for names, relative, absolute in re.findall(
        r"^\| ([a-z].*?) \| (2.*?) \| ?(.*?)\|$", text, re.M
    ):
        for name in re.sub(r"\(.*?\)", "", names).split(","):
            found[name.strip()] = _power(relative), _power(absolute)
    return found


STATED = _stated()
NAMES = list(_FUNCTIONS)


def _source() -> str:
    values = "\n".join(
        f"  out[{at} * n + i] = kiln::fast::{name}({'a, b' if name == 'divide' else 'a'});"
        for at, name in enumerate(NAMES)
    )
    return f"""\
#include <hip/hip_runtime.h>
#include <kiln/fast.h>
__global__ void __launch_bounds__(256) all(const float* x, const float* w, float* out, int n) {{
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  const float a = x[i], b = w[i];
{values}
}}
extern "C" PT_EXPORT int evaluate(const void* x, const void* w, void* out, int n,
                                  size_t* workspace_size, uint8_t*, hipStream_t stream) {{
  if (workspace_size) {{ *workspace_size = 0; return 0; }}
  hipLaunchKernelGGL(all, dim3((n + 255) / 256), dim3(256), 0, stream, (const float*)x,
                     (const float*)w, (float*)out, n);
  return hipGetLastError();
}}
"""


def _samples(many: int) -> tuple[Floats, Floats]:
    """All magnitudes, the usual ranges, the seams of the formulas, and every special value."""
    draw = np.random.default_rng(5)
    bits = draw.integers(0, 2**32, (2, many), dtype=np.uint64).astype(np.uint32).view(np.float32)
    info = np.finfo(np.float32)
    special_values = [0.0, 1.0, 2.0, 3.0, np.inf, info.max, info.tiny, info.smallest_subnormal]
    special_values += [-x for x in special_values] + [np.nan, 1e-40, 88.8, -88.8, -104.0]
    one, other = (a.ravel() for a in np.meshgrid(special_values, special_values))
    seams = [draw.normal(s, 1e-3, many // 8) for s in (0.125, 0.25, 0.3, 0.5, 1, 4.6, -0.5, -4.6)]
    x = [bits[0], draw.uniform(-1, 1, many), draw.normal(0, 4, many), draw.uniform(-100, 100, many)]
    w = [bits[1], draw.normal(0, 4, 3 * many), draw.normal(0, 4, many // 8 * 8), other]
    return np.concatenate([*x, *seams, one], dtype=np.float32), np.concatenate(w, dtype=np.float32)


def assert_as_stated(x: Floats, w: Floats, results: Floats) -> None:
    """Fail where a function is off by more than docs/math.md says."""
    for name, got in zip(NAMES, results.reshape(len(NAMES), -1), strict=True):
        relative, absolute = STATED[name]
        with np.errstate(all="ignore"):
            args = (x, w) if name == "divide" else (x,)
            exact = _FUNCTIONS[name](*(a.astype(np.float64) for a in args))
            least = 0.0 if name == "sqrt" else _FLUSHED
            bound = np.maximum(relative * np.abs(exact), absolute) + least
            overflow = np.abs(exact) * (1 + relative) >= np.finfo(np.float32).max
            right = np.abs(got - exact) <= bound
            right |= (got == exact) | (np.isnan(got) & np.isnan(exact))
            if name == "divide":  # so docs/math.md says
                right |= np.abs(x) < np.finfo(np.float32).tiny
            right |= overflow & np.isinf(got) & (np.sign(got) == np.sign(exact))
            if name == "one_plus_tanh":  # so docs/math.md says of soft caps
                right &= ~(np.abs(got - exact) > 2.0**-21)
        wrong = np.flatnonzero(~right)
        shown = [(float(x[i]), float(w[i]), float(got[i]), float(exact[i])) for i in wrong[:5]]
        assert not len(wrong), f"{name}: {len(wrong)} of {len(x)}: {shown}"


def test_every_function_has_a_stated_error() -> None:
    assert set(STATED) == set(NAMES)


def test_the_stated_errors_hold_on_the_emulation(
    toolchain: Toolchain, shared_cache: CodeCache
) -> None:
    result = build(_source(), "evaluate", targets.find("cpu"), toolchain, shared_cache)
    assert isinstance(result, Build), result
    library = ctypes.CDLL(str(result.directory / "kernel.so"))
    x, w = _samples(200_000)
    out = np.empty((len(NAMES), len(x)), np.float32)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, w, out)]
    assert library.evaluate(*pointers, len(x), None, None, None) == 0
    assert_as_stated(x, w, out)


@pytest.mark.parametrize("name", ["gfx942", "gfx1201"])
def test_the_stated_errors_hold_in_instructions(
    name: str, toolchain: Toolchain, shared_cache: CodeCache
) -> None:
    result = build(_source(), "evaluate", targets.find(name), toolchain, shared_cache)
    assert isinstance(result, Build), result
    x, w = _samples(2000)
    text = (result.directory / "kernel.s").read_text()
    function = next(iter(result.resources))
    at: list[Any] = [0x100_0000, 0x200_0000, 0x300_0000]
    memory = Memory()
    for place, array in zip(at, (x, w), strict=False):
        memory.map(hex(place), place, array.nbytes, array.tobytes())
    memory.map("out", at[2], len(NAMES) * x.nbytes)
    blocks = -(-len(x) // 256)
    launch = Launch(function, (blocks, 1, 1), (256, 1, 1), 0, (*at, len(x)))
    done = run(program_of(text, function), launch, memory, range(blocks))
    assert not done.unknown
    assert not done.findings
    assert_as_stated(x, w, np.frombuffer(memory.read(at[2], len(NAMES) * x.nbytes), np.float32))
