"""Kernels on arrays, and the sample models as bundles, for the tests on a GPU."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from scheduler import pipeline, samples
from scheduler.benchmark.verification import WHOLE_GRAPH, Finding
from scheduler.build.cuda.toolchains import CudaToolchain
from scheduler.build.model import Build
from scheduler.bundle import reader, writer
from scheduler.bundle.reader import Bundle
from scheduler.ir.bindings import Bindings, format_bindings
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Argument, Graph
from scheduler.runtime.device import Device
from scheduler.targets import Target
from tests.support.caches import KEPT

Array = np.ndarray[Any, Any]

PREAMBLE = """
#include <hip/hip_runtime.h>
#include <kiln/mma.h>
#define EXPORT extern "C" PT_EXPORT int
"""

# The dtype that each small sample was exported in; the rest of its dtypes stay as they are.
SAMPLES = {
    "bert_2layer": DType.F16,
    "gpt2_2layer": DType.F16,
    "llama_2layer": DType.BF16,
    "resnet_small": DType.F32,
    "vit_2layer": DType.F16,
}
LARGE = {"gpt2_124m": DType.F16, "llama3_8b_1layer": DType.BF16}
DTYPES = (DType.F16, DType.BF16, DType.F32)


def call(device: Device, library: Path, symbol: str, *args: Array | int) -> None:
    """Call an exported function on arrays, which are copied to the device and back."""
    arrays = {
        place: (device.allocate(arg.nbytes), arg)
        for place, arg in enumerate(args)
        if isinstance(arg, np.ndarray)
    }
    for pointer, array in arrays.values():
        device.write(pointer, array)
    kinds = ["ptr" if place in arrays else "i32" for place in range(len(args))]
    kernel = device.load(library, symbol, kinds)
    kernel([arrays[i][0] if i in arrays else int(arg) for i, arg in enumerate(args)])  # type: ignore[arg-type]
    device.synchronize()
    for pointer, array in arrays.values():
        device.read(pointer, array)
        device.free(pointer)


@cache
def sample(name: str, dtype: DType) -> Graph:
    """A sample as if it had been exported in that dtype."""
    graph, own = pipeline.load(samples.path(name)), (SAMPLES | LARGE)[name]
    if dtype is own:
        return graph

    def moved(argument: Argument) -> Argument:
        if isinstance(argument, tuple):
            return tuple(moved(one) for one in argument)
        return dtype if argument is own else argument

    nodes = tuple(
        replace(
            node,
            args=tuple(moved(one) for one in node.args),
            kwargs={key: moved(one) for key, one in node.kwargs.items()},
        )
        for node in graph.nodes
    )
    tensors = {
        key: replace(meta, dtype=dtype if meta.dtype is own else meta.dtype)
        for key, meta in graph.tensors.items()
    }
    digest = f"{graph.digest[:-8]}{dtype.value.torch_code:08x}"
    return replace(graph, name=f"{name}_{dtype.label}", digest=digest, nodes=nodes, tensors=tensors)


def bundle_of(graph: Graph, target: Target, compiler: CudaToolchain, out: Path) -> Bundle:
    """The graph's bundle for the target, by every default configuration."""
    plan = pipeline.schedule(pipeline.lower(graph))
    generated = pipeline.generate(plan, [target])
    assert not generated.externs, f"no kernel for {generated.externs[0].op}"
    results = builds_of(generated, target, compiler)
    builds = {(name, target.name): made for name, made in results.items()}
    writer.write(out, plan, generated.manifest(), generated.kernels, builds)
    return reader.open_bundle(out)


def summary(findings: Sequence[Finding], bindings: Bindings) -> str:
    """How many kernels and outputs of the graph were compared at a size, and how close."""
    whole = [one.ratio for one in findings if one.name == WHOLE_GRAPH]
    single = [one.ratio for one in findings if one.name != WHOLE_GRAPH]
    said = f"{format_bindings(bindings) or 'fixed sizes'}: {len(single)} kernels, worst error"
    said += f" {max(single):.3f} of the bound"
    return f"{said}; whole graph {max(whole):.3f}" if whole else said


def assert_all_passed(findings: Sequence[Finding]) -> None:
    """Fail with each one that did not."""
    failed = [
        f"{one.name} {dict(one.bindings)}: {one.detail}" for one in findings if not one.passed
    ]
    assert not failed, "\n".join(failed)


def builds_of(
    generated: pipeline.GeneratedCode, target: Target, compiler: CudaToolchain
) -> Mapping[str, Build]:
    """A build of every kernel, by its name. Tests may run beside each other on all cores."""
    workers = max(1, (os.cpu_count() or 1) // 4)
    made = pipeline.build_kernels(
        generated.kernels, [target], lambda *_: compiler, KEPT, workers=workers
    )
    found: dict[str, Build] = {}
    for (name, _), result in made.items():
        assert isinstance(result, Build), f"{name}: {result.reason}\n{result.detail}"
        found[name] = result
    return found
