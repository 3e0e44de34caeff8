"""The functions of kiln/math.h on many values, against the error that the header states, wherever
they run: on the CPU emulation or on a GPU."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from scipy import special

from scheduler.build.sandbox_paths import HEADER_ROOT
from scheduler.ir.pointwise import FUNCTIONS, Domain, Result

Array = np.ndarray[Any, Any]
# ``evaluate(name, x, w)``: the function of each x (and w, where it takes two), in their type.
Evaluate = Callable[[str, Array, Array], Array]


def _stated() -> dict[str, float]:
    """The errors in units in the last place that the header's first comment states."""
    comment = (HEADER_ROOT / "common" / "kiln" / "math.h").read_text().split("#pragma once")[0]
    bounds = {}
    for names, bound in re.findall(r"((?:[a-z][a-z0-9_]* )+)(exact|\d+(?:\.\d)?)(?=\s)", comment):
        for name in names.split():
            bounds[name] = 0.0 if bound == "exact" else float(bound)
    return bounds


STATED = _stated()
NAMES = list(STATED)
UNARY = [
    function.name
    for function in FUNCTIONS.values()
    if (function.arity, function.domain, function.result) == (1, Domain.FLOAT, Result.SAME)
]


def _normal_quantile(p: Any) -> Any:
    return mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)


# NumPy lacks them; SciPy has them in float64 at most.
IN_FLOAT64 = {
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "erfinv": mpmath.erfinv,
    "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
    "ndtri": _normal_quantile,
    "lgamma": lambda x: mpmath.re(mpmath.loggamma(x)),
    "digamma": mpmath.digamma,
    "i0": lambda x: mpmath.besseli(0, x),
    "i0e": lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)),
    "i1": lambda x: mpmath.besseli(1, x),
    "i1e": lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)),
}
#: Of functions with roots: the least magnitude whose places count.
LEAST: dict[str, Callable[[Array], Array]] = {
    "lgamma": lambda x: np.where(x < 0, np.maximum(np.abs(special.gammaln(1 - x)), 1), 1),
    "digamma": lambda x: np.where(x < 0, np.maximum(np.abs(np.log1p(np.abs(x))), 1), 1),
}


def math_source() -> str:
    device, host = [], []
    for number, name in enumerate(NAMES):
        call = f"kiln::{name}(x[i])" if name in UNARY else f"kiln::{name}(x[i], w[i])"
        device.append(
            f"template <typename T> __global__ void run_{name}(const T* x, const T* w, T* y, int n)"
            f" {{ int i = blockIdx.x * 256 + threadIdx.x; if (i < n) y[i] = {call}; }}"
        )
        host.append(
            f"case {number}: hipLaunchKernelGGL(run_{name}<T>, dim3((n + 255) / 256), dim3(256), 0,"
            " stream, x, w, y, n); break;"
        )
    return (
        "#include <hip/hip_runtime.h>\n#include <kiln/math.h>\n"
        + "\n".join(device)
        + "\ntemplate <typename T> void start(const T* x, const T* w, T* y, int n, int function,"
        " hipStream_t stream) {\nswitch (function) {\n" + "\n".join(host) + "\n}\n}\n"
        'extern "C" PT_EXPORT int evaluate(const void* x, const void* w, void* y, int n,'
        " int function, int wide, size_t* workspace_size, uint8_t*, hipStream_t stream) {\n"
        "if (workspace_size) { *workspace_size = 0; return 0; }\n"
        "if (wide) start((const double*)x, (const double*)w, (double*)y, n, function, stream);\n"
        "else start((const float*)x, (const float*)w, (float*)y, n, function, stream);\n"
        "return hipGetLastError();\n}\n"
    )


def _samples(dtype: type[np.floating[Any]], name: str) -> tuple[Array, Array]:
    """All magnitudes, the usual ranges, the neighbourhood of 1, and every special value."""
    rng = np.random.default_rng(NAMES.index(name))
    many = 30_000 if dtype is np.float32 else 6_000
    if name in IN_FLOAT64 and dtype is np.float64:
        many = 400  # their reference is slow
    bits = rng.integers(0, 2**63, many, dtype=np.uint64) * np.uint64(2)
    unsigned = np.uint32 if dtype is np.float32 else np.uint64
    any_bits = (bits >> np.uint64(64 - unsigned(0).itemsize * 8)).astype(unsigned).view(dtype)
    any_bits = np.where(rng.integers(0, 2, many) == 0, any_bits, -any_bits)
    wide = 100 if dtype is np.float32 else 740
    x = [any_bits, rng.uniform(-1, 1, many), rng.uniform(-wide, wide, many)]
    x += [1 + rng.normal(0, 1e-3, many), rng.normal(0, 3, many)]
    w = [rng.normal(0, 3, many), rng.normal(0, 30, many), rng.uniform(-4, 4, many)]
    w += [rng.normal(0, 1e4, many), np.round(rng.normal(0, 5, many))]
    if name == "erfinv":  # where it grows: down to the last place before 1
        places = 24 if dtype is np.float32 else 53
        x[2] = 1 - 2 ** rng.uniform(-places, -1, many)
        x[4] = x[2] * np.where(rng.integers(0, 2, many) == 0, -1, 1)
    if name == "pow":
        x[:4] = [np.abs(part) for part in x[:4]]
    info = np.finfo(dtype)
    special = [0.0, 1.0, 0.5, 2.0, 3.0, math.inf, info.max, info.tiny, info.smallest_subnormal]
    special += [-each for each in special] + [math.nan]
    one, other = np.meshgrid(np.array(special, dtype), np.array(special, dtype))
    with np.errstate(all="ignore"):
        return (
            np.concatenate([*x, one.ravel()]).astype(dtype),
            np.concatenate([*w, other.ravel()]).astype(dtype),
        )


def _reference(name: str, x: Array, w: Array) -> Array:
    """In the next wider type: double for float, 80 bits or more for double."""
    wide = np.float64 if x.dtype == np.float32 else np.longdouble
    if name in IN_FLOAT64 and wide is np.longdouble:
        return np.array([_exact(name, float(each)) for each in x], wide)
    args = (x,) if name in UNARY else (x, w)
    return np.asarray(FUNCTIONS[name].numpy(*(each.astype(wide) for each in args)))


def _exact(name: str, x: float) -> np.longdouble:
    inside = {"erfinv": abs(x) < 1, "ndtri": 1e-12 < x < 1}.get(name, True)
    pole = name in ("lgamma", "digamma") and x < 0 and x == np.floor(x)
    # Beyond, SciPy's are asymptotic and exact; its Bessel functions are off by some places there.
    most = 1e15 if name in LEAST or name.startswith("i") else 40
    if x == 0 or not math.isfinite(x) or abs(x) > most or not inside or pole:
        return np.longdouble(FUNCTIONS[name].numpy(np.float64(x)))
    with mpmath.workdps(50):
        return np.longdouble(mpmath.nstr(IN_FLOAT64[name](mpmath.mpf(x)), 25))


def assert_as_stated(name: str, dtype: type[np.floating[Any]], evaluate: Evaluate) -> None:
    """Fail where the function is off by more than the header states, or has a wrong sign."""
    x, w = _samples(dtype, name)
    got = evaluate(name, x, w)
    with np.errstate(all="ignore"):
        exact = _reference(name, x, w)
        rounded = exact.astype(dtype)
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        signs = np.signbit(got) == np.signbit(rounded)
        largest = np.where(np.isfinite(rounded), np.abs(rounded), np.finfo(dtype).max)
        if name in LEAST:
            largest = np.maximum(largest, LEAST[name](x.astype(np.float64)).astype(dtype))
        ulps = np.abs(got.astype(exact.dtype) - exact) / np.spacing(largest)
    # Correctly rounded results count half a place at most; beside infinity a place is one step.
    ulps = np.where(same, np.minimum(np.nan_to_num(ulps), 0.5), ulps)
    worst = int(np.argmax(np.where(np.isnan(ulps), np.inf, ulps)))
    bound = STATED[name]
    shown = f"{name}({x[worst]!r}, {w[worst]!r}) = {got[worst]!r}, not {exact[worst]!r}"
    assert bound > 0 or same.all(), shown
    assert bound == 0 or ulps[worst] <= bound, f"{ulps[worst]} ulp: {shown}"
    signed = np.isfinite(rounded)
    assert signs[signed].all(), f"sign of {name}({x[signed][~signs[signed]][:1]!r})"
