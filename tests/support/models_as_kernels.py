"""Runs whole graphs as kernels on a device, many graphs from one compilation, and judges them.

All kernels of all graphs become one source, each in a namespace of its own: a compiler's start and
the headers are most of what a small kernel's compilation takes.

A random graph has no error bound of its own: small differences may grow in it, and a comparison
turns any of them into another answer. So the reference runs it several times, each value off by
as much as a kernel's rounding may put it, and what comes out differently shows what each element
may differ by.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scheduler import pipeline
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.flags import Flags
from scheduler.build.model import Build, Toolchain
from scheduler.build.toolchains import bundled_clang
from scheduler.bundle.execute import BundleRun
from scheduler.bundle.externs import extern_runner
from scheduler.bundle.inputs import by_buffer
from scheduler.bundle.manifest import Manifest
from scheduler.codegen.kernel import RenderedKernel
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Graph, Node, Ref
from scheduler.reference import evaluate
from scheduler.runtime.cpu import CpuDevice
from scheduler.runtime.cuda import CudaDevice
from scheduler.runtime.device import Device
from scheduler.targets import Target

_INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)
_TRIALS = 12
_NOISE = 4.0  # times what one rounding is: near ties are found by few trials
# Ops that move elements and compute nothing: two reads of one value stay equal.
_EXACT = frozenset(
    {
        *("permute", "reshape", "view", "flatten", "slice", "select", "expand", "unsqueeze"),
        *("squeeze", "flip", "roll", "repeat", "tril", "triu", "diagonal", "constant_pad_nd"),
        *("cat", "stack", "transpose", "clone", "embedding", "index_select", "gather", "index"),
        *("neg", "abs", "relu", "maximum", "minimum", "where", "masked_fill", "amax", "amin"),
        *("max_pool2d", "ones_like", "full", "arange", "clamp", "sign", "floor", "ceil"),
    }
)


# Ops that subtract a mean: of neighbours that are nearly equal little is left but its rounding.
_CENTRED = frozenset({"layer_norm", "var"})


@dataclass(frozen=True)
class Prepared:
    """A graph as kernels of a library."""

    graph: Graph
    generated: pipeline.GeneratedCode


@dataclass(frozen=True)
class Library:
    """What ``BundleRun`` asks of a bundle."""

    manifest: Manifest
    path: Path
    graph: Graph

    def library(self, kernel: str, target: str) -> Path:
        return self.path


class _Poisoned:
    """Memory begins as NaN: an element that no kernel writes shows."""

    def allocate(self: Any, nbytes: int) -> int:
        pointer = int(super().allocate(nbytes))  # type: ignore[misc]
        if pointer:
            self.fill(pointer, 0xFF, nbytes)
        return pointer


class PoisonedCpu(_Poisoned, CpuDevice):
    """The emulation."""


class PoisonedCuda(_Poisoned, CudaDevice):
    """An NVIDIA GPU."""


def opened(device: str, target: Target) -> Device:
    """``cpu`` emulates the target on one core; ``cuda:0`` is what it says."""
    kind, _, index = device.partition(":")
    return PoisonedCuda(int(index)) if kind == "cuda" else PoisonedCpu(target, threads=1)


def prepare(graph: Graph, target: Target, *, fuse: bool = True) -> Prepared:
    plan = pipeline.schedule(pipeline.lower(graph), fuse=fuse)
    return Prepared(graph, pipeline.generate(plan, [target]))


def compile_all(
    prepared: Sequence[Prepared],
    target: Target,
    cache: CodeCache,
    flags: Flags,
    toolchain: Toolchain | None = None,
) -> Path:
    """One library with the kernels of all, by the bundled compiler if none is given. Raises
    ``AssertionError`` with the compiler's log."""
    kernels = {k.name: k for one in prepared for k in one.generated.kernels}
    source = combined(list(kernels.values()))
    made = build(
        source, next(iter(kernels)), target, toolchain or bundled_clang(cache), cache, flags
    )
    assert isinstance(made, Build), f"{made.reason}\n{made.detail}\n{source}"
    return made.directory / "kernel.so"


def combined(kernels: Sequence[RenderedKernel]) -> str:
    """The kernels as one source."""
    includes = dict.fromkeys(i for k in kernels for i in _INCLUDE.findall(k.source))
    bodies = [
        f"namespace unit{number} {{\n{_INCLUDE.sub('', kernel.source)}\n}}\n"
        for number, kernel in enumerate(kernels)
    ]
    return "".join((*includes, *bodies))


def run(
    one: Prepared, path: Path, target: Target, values: Mapping[str, Any], bindings: dict[str, int]
) -> dict[str, Any]:
    """The graph's outputs by name, through its kernels on the emulation."""
    device = opened("cpu", target)
    try:
        return run_on(device, one, path, values, bindings)
    finally:
        device.close()


def run_on(
    device: Device,
    one: Prepared,
    path: Path,
    values: Mapping[str, Any],
    bindings: dict[str, int],
) -> dict[str, Any]:
    """The graph's outputs by name, through its kernels on an open device."""
    manifest = one.generated.manifest()
    runner = extern_runner(one.generated.schedule)
    library: Any = Library(manifest, path, one.graph)
    with BundleRun(library, device, bindings, runner) as loaded:
        got = loaded.run(by_buffer(library, values))
    return dict(zip(one.graph.outputs, (got[name] for name in manifest.outputs), strict=True))


# -- judging --------------------------------------------------------------------------------------


def reference(
    graph: Graph, inputs: Mapping[str, Any], bindings: Mapping[str, int], noise: Any = None
) -> dict[str, Any]:
    """Every value of the graph; with ``noise`` (a generator) each is off by a kernel's rounding."""
    values = dict(inputs)
    dtypes = {name: meta.dtype for name, meta in graph.tensors.items()}
    for node in graph.nodes:
        function = node.target.split(".")[1]
        (name,) = node.outputs
        known: Mapping[str, Any] = values
        if noise is not None and function in _CENTRED:
            known = {n: _shaken(v, noise) if dtypes[n].is_float else v for n, v in values.items()}
        value = np.asarray(evaluate(node, known, bindings, dtypes=dtypes)[name])
        if noise is not None and function == "layer_norm":
            value = value + _centred(node, values, noise)
        if function.endswith("_"):  # what shares the memory sees it
            (written,) = (arg for arg in node.args if isinstance(arg, Ref))
            values[written.name][...] = value
            values[name] = values[written.name]
            continue
        if noise is not None and dtypes[name].is_float and function not in _EXACT:
            read = [
                (values[arg.name], dtypes[arg.name])
                for arg in node.args
                if isinstance(arg, Ref) and dtypes[arg.name].is_float
            ]
            value = _disturbed(value, read, dtypes[name], noise)
        values[name] = value if dtypes[name].is_float else value.astype(dtypes[name].numpy)
    return values


def _shaken(value: Any, noise: Any) -> Any:
    """What a subtraction of a rounded mean does to an argument."""
    return value * (1 + _NOISE * DType.F32.eps * noise.choice((-1.0, 1.0), np.shape(value)))


def _centred(node: Node, values: Mapping[str, Any], noise: Any) -> Any:
    """What is left of a rounding of the argument when its mean is subtracted: all of it, over the
    row's deviation. A product that is rounded for its mean and not where that is subtracted, as
    fused multiply-adds have it, leaves it in a row of one element too."""
    x, sizes, *more = (values[arg.name] if isinstance(arg, Ref) else arg for arg in node.args)
    weight = more[0] if more and more[0] is not None else 1.0
    axes = tuple(range(-len(sizes), 0))
    if 0 in np.shape(x):
        return 0.0
    deviation = np.sqrt(np.var(x, axis=axes, keepdims=True) + node.kwargs.get("eps", 1e-5))
    off = _NOISE * DType.F32.eps * np.abs(x * weight) / deviation
    return off * noise.choice((-1.0, 1.0), np.shape(off))


def _disturbed(value: Any, read: list[tuple[Any, DType]], own: DType, noise: Any) -> Any:
    """A value off by somewhat more than its own rounding and that of the sums behind it."""
    eps = max(own.eps, DType.F32.eps if own is not DType.F64 else own.eps)
    inner = max([eps, *(dtype.eps for _, dtype in read)])
    largest = [float(np.abs(values).max(initial=0.0)) for values, _ in read]
    magnitude = float(np.abs(value).max(initial=0.0))
    summands = math.prod(largest[:2]) if len(largest) > 1 else sum(largest)
    off = eps * np.abs(value) + inner * magnitude + DType.F32.eps * min(summands, 1e4)
    return value + _NOISE * off * noise.choice((-1.0, 1.0), np.shape(value))


def differences(
    graph: Graph, got: Mapping[str, Any], inputs: Mapping[str, Any], bindings: Mapping[str, int]
) -> tuple[list[str], int, int]:
    """What differs by more than rounding explains, and how many elements were compared of all."""
    exact = reference(graph, inputs, bindings)
    trials = [
        reference(graph, inputs, bindings, np.random.default_rng(seed)) for seed in range(_TRIALS)
    ]
    faults, compared, total = [], 0, 0
    for name in graph.outputs:
        dtype = graph.tensors[name].dtype
        want, have = exact[name], got[name]
        if want.shape != have.shape:
            faults.append(f"{name}: shape {have.shape}, not {want.shape}")
            continue
        spread = _spread(want, [trial[name] for trial in trials])
        if dtype.is_float:
            stable = spread <= 0.3 * np.abs(want) + 1e-2
            typical = float(np.quantile(spread, 0.75)) if spread.size else 0.0
            bound = 3 * spread + 2 * typical + 4 * dtype.eps * np.abs(want) + 1e-30
            wrong = ~(np.abs(have - want) <= bound) & stable
        else:
            stable = spread == 0
            wrong = (have != want) & stable
        compared += int(np.count_nonzero(stable))
        total += want.size
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            faults.append(
                f"{name}{list(at)} is {have[at]}, not {want[at]} (spread {spread[at]:.3g};"
                f" {np.count_nonzero(wrong)} of {want.size} wrong)"
            )
    return faults, compared, total


def _spread(want: Any, trials: list[Any]) -> Any:
    exact = np.asarray(want, np.float64)
    far = [np.abs(np.asarray(trial, np.float64) - exact) for trial in trials]
    return np.maximum.reduce(far)
