"""Small modules of torch through their kernels on the emulation, held against torch itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scheduler import pipeline
from scheduler.build.flags import DEFAULT_FLAGS
from scheduler.build.model import Build, Toolchain
from scheduler.build.toolchains import Search, bundled_clang, find_target_toolchains, pick_toolchain
from scheduler.bundle import reader, writer
from scheduler.bundle.reader import Bundle
from scheduler.ir.graph import Graph
from scheduler.targets import Target, find
from tests.support.caches import KEPT
from tests.support.models_as_kernels import compile_all, prepare, run
from tests.unit.torch_export import as_module, export, inputs_of

CPU = find("cpu")


def outputs_of(graph: Graph, values: dict[str, Any], *, fuse: bool = True) -> dict[str, Any]:
    """The outputs of a graph's kernels by name, logical values."""
    prepared = prepare(graph, CPU, fuse=fuse)
    library = compile_all([prepared], CPU, KEPT, DEFAULT_FLAGS)
    sizes = {name: info.hint for name, info in graph.symbols.items()}
    return run(prepared, library, CPU, values, sizes)


def assert_kernels_agree(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    folder: Path,
    *,
    relative: float = 0.0,
    others: Sequence[str] = ("gfx942", "sm_90"),
) -> Graph:
    """What kernels of a function of tensors give is what torch gives, to ``relative`` of the
    largest; the same sources compile for ``others`` (targets that share no hardware)."""
    import torch

    module = as_module(function)
    program, graph = export(module, args, folder)
    got = outputs_of(graph, inputs_of(program, graph, args))
    with torch.no_grad():
        expected = module(*args)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for name, tensor in zip(graph.outputs, expected, strict=True):
        assert_close(got[name], tensor, relative, name)
    for other in others:
        target = find(other)
        prepared = prepare(graph, target)
        compile_all([prepared], target, KEPT, DEFAULT_FLAGS, _compiler(target))
    return graph


def _compiler(target: Target) -> Toolchain:
    found = find_target_toolchains(target, Search(cache=KEPT))
    return pick_toolchain(found, target)


def assert_close(got: Any, tensor: Any, relative: float, name: str) -> None:
    """An output beside torch's tensor: exact, or by the largest of it."""
    wide = logical(tensor)
    assert got.shape == wide.shape, name
    largest = np.abs(wide[np.isfinite(wide)]).max(initial=0) if wide.dtype.kind in "fc" else 0
    np.testing.assert_allclose(
        got, wide, rtol=relative, atol=relative * float(largest), err_msg=name
    )


def logical(tensor: Any) -> Any:
    """A tensor of torch as the engine's arrays hold it: float64 for floats."""
    import torch

    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.is_floating_point():
        return tensor.to(torch.float64).numpy()
    return (tensor.to(torch.complex128) if tensor.is_complex() else tensor).numpy()


def bundle_of(graph: Graph, folder: Path, targets: Sequence[str] = ("cpu",)) -> Bundle:
    """A graph's bundle for the emulation, or other targets of AMD's, written and read."""
    plan = pipeline.schedule(pipeline.lower(graph))
    chosen = [find(name) for name in targets]
    generated = pipeline.generate(plan, chosen)
    toolchain = bundled_clang(KEPT)
    results = pipeline.build_kernels(generated.kernels, chosen, lambda *_: toolchain, KEPT)
    builds = {key: one for key, one in results.items() if isinstance(one, Build)}
    missing = {key: one for key, one in results.items() if key not in builds}
    assert not missing, missing
    writer.write(folder, plan, generated.manifest(), generated.kernels, builds)
    return reader.open_bundle(folder)
