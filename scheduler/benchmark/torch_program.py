"""Load a model's file as a torch program, complete or with its weights removed.

The sample graphs are stored without weights, which code generation does not need. The comparison
with torch uses random weights anyway, so tensors of zeros replace them here.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Graph, InputKind
from scheduler.ir.index.functions import evaluate


def load(file: Path, graph: Graph) -> Any:
    """The ``ExportedProgram`` in the file that ``graph`` was read from.

    Raises what torch's reader raises.
    """
    with zipfile.ZipFile(file) as archive:
        members = [PurePosixPath(name) for name in archive.namelist()]
        models = [one for one in members if one.parts[1:2] == ("models",)]
        weights = [one for one in members if one.parts[1:3] == ("data", "weights")]
        has_weights = any(one.suffix != ".json" for one in weights)
        holds = any(one.kind is not InputKind.USER for one in graph.inputs)
        if has_weights or not weights or not models or not holds:
            return _load(file, models)
        model = archive.read(str(models[0]))
    return _without_weights(model, graph)


def _load(file: Path, models: Sequence[PurePosixPath]) -> Any:
    """The only program in a file. ``torch.export.load`` requires the name ``model``, and logs the
    reason of a failure instead of raising it."""
    import torch  # noqa: PLC0415 -- seconds, and not everywhere

    if not models:  # written by torch before 2.8
        return torch.export.load(file)
    from torch.export.pt2_archive._package import load_pt2  # noqa: PLC0415 -- as above

    (program,) = load_pt2(str(file)).exported_programs.values()
    return program


def torch_type(dtype: DType) -> Any:
    """The ``torch.dtype``."""
    import torch  # noqa: PLC0415 -- as above

    return getattr(torch, dtype.torch.removeprefix("torch."))


def _without_weights(model: bytes, graph: Graph) -> Any:
    from torch._export.serde import schema, serialize  # noqa: PLC0415 -- as above

    program = serialize._bytes_to_dataclass(schema.ExportedProgram, model)
    buffers = [spec.buffer for spec in program.graph_module.signature.input_specs if _buffer(spec)]
    not_persistent = {each.buffer_name for each in buffers if not each.persistent}
    state: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    for one in graph.inputs:
        if one.kind is not InputKind.USER:
            is_constant = one.kind is InputKind.CONSTANT or one.source_name in not_persistent
            zeros = _zeros(graph, one.name, parameter=one.kind is InputKind.PARAMETER)
            (constants if is_constant else state)[one.source_name] = zeros
    return serialize.ExportedProgramDeserializer().deserialize(program, state, constants, b"")


def _buffer(spec: Any) -> bool:
    return bool(spec.type == "buffer")


def _zeros(graph: Graph, name: str, *, parameter: bool) -> Any:
    import torch  # noqa: PLC0415 -- as above

    meta = graph.tensors[name]
    size, stride = ([evaluate(each, {}) for each in of] for of in (meta.size, meta.stride))
    zeros = torch.empty_strided(size, stride, dtype=torch_type(meta.dtype)).zero_()
    return torch.nn.Parameter(zeros, requires_grad=False) if parameter else zeros
