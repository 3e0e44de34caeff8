"""Export of small torch modules for tests, read back and run beside torch: by the reference, and
by the operations that they are lowered to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from scheduler.frontends.pt2 import read
from scheduler.ir.graph import Graph, InputKind
from scheduler.ir.ops import UnsupportedOpError
from scheduler.reference import run
from tests.unit.lowering.agreeing import assert_lowers


def as_module(function: Any) -> Any:
    """A module around a function of tensors."""
    import torch

    class Wrapped(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return function(*args)

    return Wrapped()


def export(
    module: Any,
    args: tuple[Any, ...],
    folder: Path,
    *,
    decompose: bool = False,
    train: bool = False,
    **options: Any,
) -> tuple[Any, Graph]:
    """The exported program, and the graph that our reader makes of its file."""
    import torch

    program = torch.export.export(module.train(train), args, **options)
    if decompose:
        program = program.run_decompositions()
    path = folder / "model.pt2"
    torch.export.save(program, path)
    return program, read(path)


def inputs_of(program: Any, graph: Graph, args: tuple[Any, ...]) -> dict[str, Any]:
    """The values of all inputs, weights among them, as the reference takes them."""
    given = iter([_flat(arg) for arg in args])
    values: dict[str, Any] = {}
    for value in graph.inputs:
        if value.kind is InputKind.USER:
            values[value.name] = next(given)
        else:
            source = {**program.state_dict, **program.constants}[value.source_name]
            values[value.name] = _flat(source)
    return values


def _flat(value: Any) -> Any:
    if isinstance(value, int):
        return value
    tensor = value.detach().resolve_conj().clone()
    if tensor.is_complex():
        return tensor.cdouble().numpy()
    return (tensor.double() if tensor.is_floating_point() else tensor).numpy()


def _sizes_of(graph: Graph, values: Mapping[str, Any]) -> dict[str, int]:
    """Sizes that the inputs themselves say."""
    stated = [
        pair
        for name, value in values.items()
        if name in graph.tensors
        for pair in zip(graph.tensors[name].size, np.shape(value), strict=True)
    ]
    return {str(size): own for size, own in stated if str(size) in graph.symbols}


def _to_numpy(tensor: Any) -> Any:
    plain = tensor.detach().resolve_conj().resolve_neg()
    return (plain.double() if plain.is_floating_point() else plain).numpy()


def _as_tensor(value: Any) -> Any:
    """A number that the model returns, as the engine gives it."""
    import torch

    if isinstance(value, torch.Tensor):
        return value
    return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)


def agree(
    module: Any,
    args: tuple[Any, ...],
    folder: Path,
    *,
    bindings: Mapping[str, int] | None = None,
    run_with: tuple[Any, ...] | None = None,
    decompose: bool = False,
    least_tolerance: float = 1e-12,
    **options: Any,
) -> Graph:
    """Export, run here and in torch, compare every output and every input that the model writes;
    float64 models to 12 digits. Lower it, and run its operations too: one export serves both.

    ``run_with`` are other arguments than those that it is exported with, of other sizes."""
    import torch

    program, graph = export(module, args, folder, decompose=decompose, **options)
    hints = {name: info.hint for name, info in graph.symbols.items()}
    args = run_with or args
    values = inputs_of(program, graph, args)
    sizes = {**hints, **(_sizes_of(graph, values) if run_with else {}), **(bindings or {})}
    refused = None
    try:
        got = run(graph, values, sizes)
    except UnsupportedOpError as error:
        refused = error
    given = tuple(a.clone() if hasattr(a, "clone") else a for a in args)
    with torch.no_grad():
        returned = module(*given)
    returned = list(returned) if isinstance(returned, tuple | list) else [returned]
    constants = {each.place: each.value for each in graph.constant_outputs}
    assert {place: returned[place] for place in constants} == constants
    returned = [_as_tensor(v) for place, v in enumerate(returned) if place not in constants]
    assert len(returned) == len(graph.returned_outputs)
    expected = dict(zip(graph.returned_outputs, returned, strict=True))
    users = iter([value for value in given if value is not None])
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    after = {
        each.name: next(users) if each.kind is InputKind.USER else state.get(each.source_name)
        for each in graph.inputs
    }
    expected |= {written.output: after[written.input] for written in graph.mutations}
    if refused is not None:  # lowering may know more; what it makes is torch's all the same
        given = {graph.outputs[i]: _to_numpy(tensor) for i, tensor in expected.items()}
        assert_lowers(graph, values, sizes, given, tolerance=max(1e-6, least_tolerance))
        raise refused
    for index, tensor in sorted(expected.items()):
        name = graph.outputs[index]
        own = np.asarray(got[name])
        if tensor.dtype in (torch.float16, torch.bfloat16):
            own = _to_numpy(torch.from_numpy(own).to(tensor.dtype))
        assert own.shape == tuple(tensor.shape), f"output {index}"
        # float32 is torch's default type for a division of integers, a linspace and such.
        is_single = tensor.dtype in (torch.float32, torch.complex64)
        tolerance = 1e-6 if is_single else least_tolerance
        np.testing.assert_allclose(
            own,
            _to_numpy(tensor),
            rtol=tolerance,
            atol=tolerance,
            err_msg=f"output {index}, {[n.target for n in graph.nodes if name in n.outputs]}",
        )
    assert_lowers(graph, values, sizes, got)
    return graph
