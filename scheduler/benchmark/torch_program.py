"""Load a model's file as a torch program, complete or with its weights removed.

The sample graphs are stored without weights, which code generation does not need. The comparison
with torch uses random weights anyway, so tensors of zeros replace them here.
"""

from __future__ import annotations

import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Graph, InputKind
from scheduler.ir.index.functions import evaluate


def load(file: Path, graph: Graph) -> Any:
    """The ``ExportedProgram`` in the file that ``graph`` was read from.

    Raises what torch's reader raises.
    """
    import torch  # noqa: PLC0415 -- seconds, and not everywhere
    from torch.export.pt2_archive._package import load_pt2  # noqa: PLC0415 -- as above

    with zipfile.ZipFile(file) as archive:
        members = [PurePosixPath(name) for name in archive.namelist()]
        models = [member for member in members if member.parts[1:2] == ("models",)]
        weights = [member for member in members if member.parts[1:3] == ("data", "weights")]
        has_weights = any(member.suffix != ".json" for member in weights)
        needs_weights = any(graph_input.kind is not InputKind.USER for graph_input in graph.inputs)
        if has_weights or not weights or not models or not needs_weights:
            if not models:  # written by torch before 2.8
                return torch.export.load(file)
            # ``torch.export.load`` requires the name ``model``, and logs the reason of a failure
            # instead of raising it.
            (program,) = load_pt2(str(file)).exported_programs.values()
            return program
        model = archive.read(str(models[0]))
    return _without_weights(model, graph)


def torch_type(dtype: DType) -> Any:
    """The ``torch.dtype``."""
    import torch  # noqa: PLC0415 -- as above

    return getattr(torch, dtype.torch.removeprefix("torch."))


def _without_weights(model: bytes, graph: Graph) -> Any:
    import torch  # noqa: PLC0415 -- as above
    from torch._export.serde import schema, serialize  # noqa: PLC0415 -- as above

    program = serialize._bytes_to_dataclass(schema.ExportedProgram, model)
    specs = program.graph_module.signature.input_specs
    buffers = [spec.buffer for spec in specs if spec.type == "buffer"]
    not_persistent = {buffer.buffer_name for buffer in buffers if not buffer.persistent}
    state_dict: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    for graph_input in graph.inputs:
        if graph_input.kind is InputKind.USER:
            continue
        meta = graph.tensors[graph_input.name]
        size = [evaluate(length, {}) for length in meta.size]
        stride = [evaluate(step, {}) for step in meta.stride]
        zeros = torch.empty_strided(size, stride, dtype=torch_type(meta.dtype)).zero_()
        if graph_input.kind is InputKind.PARAMETER:
            zeros = torch.nn.Parameter(zeros, requires_grad=False)
        is_constant = (
            graph_input.kind is InputKind.CONSTANT or graph_input.source_name in not_persistent
        )
        (constants if is_constant else state_dict)[graph_input.source_name] = zeros
    return serialize.ExportedProgramDeserializer().deserialize(program, state_dict, constants, b"")
