"""Comparison of a model's whole graph with torch's execution of the same file.

The file's program (``torch_program.py``) runs on the CPU with the reference's inputs. Its outputs,
and its writes to inputs and buffers, must match the reference's. This detects misinterpretations of
the file or of an op that kernels and reference share.

torch unpickles the file's content: an untrusted file is compared in the sandbox
(``scheduler/untrusted.py``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np

from scheduler import reference
from scheduler.benchmark import torch_program
from scheduler.benchmark.reference_outputs import ReferenceOutputs
from scheduler.benchmark.verification import (
    Finding,
    finding_of,
    graph_tolerance,
    unchecked_finding,
    with_data_sizes,
)
from scheduler.errors import Rejected, Stage, UserError
from scheduler.frontends import pt2
from scheduler.fusion import schedule
from scheduler.ir.bindings import Bindings
from scheduler.ir.graph import Graph, InputKind, insert_constants
from scheduler.ir.index.functions import evaluate
from scheduler.ir.ops import UnsupportedOpError
from scheduler.ir.random import draws_random
from scheduler.ir.storage import Array
from scheduler.lowering import lower


def compare_with_torch(file: Path, bindings: Bindings, seed: int = 0) -> list[Finding]:
    """Return a finding for each output, constant outputs included, and each written input.

    Findings are named after torch's version. If torch cannot run the model, or the model draws
    random numbers, there is one unchecked finding.

    Raises ``UserError`` if the model cannot be read or lowered, ``ModuleNotFoundError`` without
    torch.
    """
    import torch  # noqa: PLC0415 -- seconds, and not everywhere

    name = f"torch {torch.__version__.partition('+')[0]}"
    graph = pt2.read(file)
    tolerance = graph_tolerance(schedule(lower(graph)), bindings)
    if any(map(draws_random, graph.nodes)):
        reason = "the model draws random numbers, which differ from torch's"
        return [unchecked_finding(name, bindings, "", reason)]
    bindings = with_data_sizes(graph, bindings, seed)
    inputs = reference.random_inputs(graph, bindings, np.random.default_rng(seed))
    try:
        returned, final_inputs = _run(file, graph, inputs, bindings)
    except (RuntimeError, NotImplementedError, IndexError, ValueError, TypeError) as error:
        why = " ".join(str(error).split())[:300]
        return [unchecked_finding(name, bindings, "", f"torch cannot run it: {why}")]
    constants = {
        constant_output.place: constant_output.value for constant_output in graph.constant_outputs
    }
    output_indices: list[int | None] = insert_constants(
        graph.returned_outputs, dict.fromkeys(constants)
    )
    if len(returned) != len(output_indices):
        reason = f"torch returns {len(returned)} values, Kiln {len(output_indices)}"
        return [finding_of(name, bindings, "", Rejected(Stage.CHECK, reason))]
    findings = []
    for index, constant in sorted(constants.items()):  # torch returns exactly the value and type
        output, torch_value = f"constant {index}", cast(Any, returned[index])
        if type(constant) is type(torch_value) and repr(constant) == repr(torch_value):
            findings.append(Finding(name, bindings, output, True, 0.0, 0.0, 0.0, ""))
        else:
            mismatch = Rejected(Stage.CHECK, f"torch returns {torch_value!r}, Kiln {constant!r}")
            findings.append(finding_of(name, bindings, output, mismatch))
    try:
        expected = ReferenceOutputs(graph, inputs, bindings, tolerance, seed)
    except (UserError, UnsupportedOpError) as error:
        return [unchecked_finding(name, bindings, "", f"no reference: {error}")]
    got = {
        index: _array(value)
        for index, value in zip(output_indices, returned, strict=True)
        if index is not None
    }
    got |= {written.output: final_inputs[written.input] for written in graph.mutations}
    written = {mutation.output: mutation.input for mutation in graph.mutations}
    missing_write = Rejected(Stage.CHECK, "torch writes it, Kiln does not")
    for input_name, value in final_inputs.items():
        unchanged = np.array_equal(value, np.asarray(inputs[input_name]), equal_nan=True)
        if input_name not in written.values() and not unchanged:
            findings.append(finding_of(name, bindings, input_name, missing_write))
    for index, output in enumerate(graph.outputs):
        title = written.get(index, output)
        if output in expected.missing:
            reason = f"no reference: {expected.missing[output]}"
            findings.append(unchecked_finding(name, bindings, title, reason))
        else:
            result = expected.check(output, got[index], title)
            findings.append(finding_of(name, bindings, title, result))
    return findings


def _run(
    file: Path, graph: Graph, inputs: dict[str, Any], bindings: Bindings
) -> tuple[list[Array], dict[str, Array]]:
    """Return torch's outputs, and the inputs after the run.

    Inputs that share memory with a written input are left out. Weights that are not floats, or that
    share memory, keep the file's values: ``inputs`` is updated to match.
    """
    import torch  # noqa: PLC0415 -- as above
    from torch.utils import _pytree  # noqa: PLC0415 -- as above

    program = torch_program.load(file, graph)
    weights = {
        graph_input.name: graph_input
        for graph_input in graph.inputs
        if graph_input.kind is not InputKind.USER
    }
    state = {**program.state_dict, **program.constants}
    with torch.no_grad():
        for name, weight in weights.items():
            tensor = state[weight.source_name]
            if tensor.is_floating_point() or tensor.is_complex():
                tensor.copy_(torch.from_numpy(np.asarray(inputs[name])))
        inputs |= {name: _array(state[weight.source_name]) for name, weight in weights.items()}
        module = program.module()
        user_inputs = {
            graph_input.name: _tensor(graph, graph_input.name, inputs[graph_input.name], bindings)
            for graph_input in graph.inputs
            if graph_input.name not in weights
        }
        flat_inputs = [
            user_inputs.get(spec.arg.name, getattr(spec.arg, "value", None))
            for spec in program.graph_signature.input_specs
            if spec.kind is torch.export.graph_signature.InputKind.USER_INPUT
        ]
        arguments, keywords = _pytree.tree_unflatten(flat_inputs, program.call_spec.in_spec)
        returned = _pytree.tree_leaves(module(*arguments, **keywords))
    updated = {**state, **dict(module.named_parameters()), **dict(module.named_buffers())}
    tensors = {
        **user_inputs,
        **{name: updated[weight.source_name] for name, weight in weights.items()},
    }
    # A tensor that shares memory with a written tensor is written too.
    written = {_storage_pointer(tensors[mutation.input]) for mutation in graph.mutations}
    mutated = {mutation.input for mutation in graph.mutations}
    final_inputs = {
        name: _array(value)
        for name, value in tensors.items()
        if name in mutated
        or (isinstance(value, torch.Tensor) and _storage_pointer(value) not in written)
    }
    return returned, final_inputs


def _storage_pointer(tensor: Any) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _tensor(graph: Graph, name: str, value: Any, bindings: Bindings) -> Any:
    """Return an input as a torch tensor that torch may write: a copy in its dtype, with the memory
    order of the graph's strides."""
    import torch  # noqa: PLC0415 -- as above

    if name not in graph.tensors:
        return int(value)
    meta = graph.tensors[name]
    dtype = torch_program.torch_type(meta.dtype)
    steps = [evaluate(step, bindings) for step in meta.stride]
    order = sorted(range(len(steps)), key=lambda d: -steps[d])
    reordered = torch.from_numpy(np.array(np.transpose(value, order), order="C")).to(dtype)
    return reordered.permute(*np.argsort(order).tolist()) if order else reordered


def _array(value: Any) -> Array:
    """Copy a tensor or a number in the reference's type: floats as float64."""
    import torch  # noqa: PLC0415 -- as above

    tensor = torch.as_tensor(value).detach().resolve_conj().resolve_neg().clone()
    if tensor.is_complex():
        return np.asarray(tensor.to(torch.complex128))
    return np.asarray(tensor.double() if tensor.is_floating_point() else tensor)
