"""The metadata comment above a kernel, in Inductor's format.

Inductor writes it in ``torch/_inductor/utils.py`` (``get_kernel_metadata``); here the path is that
of the kernel's source in a bundle.
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.codegen.bundle_paths import source_path
from scheduler.codegen.names import op_packet
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Argument, Expr, Node, Ref, Subgraph, TensorMeta
from scheduler.ir.operations import Buffer, Lowered
from scheduler.text import escape_comment
from scheduler.text import shorten as _short


class MetadataComment:
    """Writes the comments of one lowered graph; users are counted once for all kernels.

    ``source_file`` is the file name of a kernel's source, ``mark`` begins a comment in it,
    ``device`` is PyTorch's name of the device.
    """

    def __init__(
        self, lowered: Lowered, source_file: str, mark: str = "//", device: str = "cuda:0"
    ) -> None:
        self._source_file = source_file
        self._mark = mark
        self._buffers = lowered.buffers
        self._tensors = lowered.graph.tensors
        self._device = device
        self._order = {node.name: i for i, node in enumerate(lowered.graph.nodes)}
        self._nodes = lowered.graph.nodes
        self._users = _count_users(lowered)
        self._lists: dict[tuple[Expr, ...], str] = {}

    def __call__(self, node: SchedulerNode, kernel: str) -> str:
        """Return the comment's lines, each ending with a newline, for ``node`` and its
        ``kernel``."""
        nodes = [self._nodes[self._order[name]] for name in node.nodes if name in self._order]
        nodes.sort(key=lambda graph_node: self._order[graph_node.name])
        sources: dict[str, list[str]] = {}
        for graph_node in nodes:
            sources.setdefault(source_name(graph_node), []).append(_short(graph_node.name))
        ops = dict.fromkeys(op_packet(graph_node.target) for graph_node in nodes)
        lines = [
            f"kernel path: {source_path(kernel, self._source_file)}",
            f"Topologically Sorted Source Nodes: [{', '.join(map(_short, sources))}], "
            f"Original ATen: [{', '.join(map(_short, ops))}]",
            "Source node to ATen node mapping:",
            *(
                f"  {_short(source)} => {', '.join(names)}"
                for source, names in sorted(sources.items())
            ),
            "Graph fragment:",
            *(
                f"  %{_short(buffer.source_name or buffer.name)} : {self._describe(buffer)}"
                f" = PlaceHolder[target={_short(buffer.name)}]"
                for buffer in map(self._buffers.__getitem__, node.reads)
            ),
            *(f"  {self._call(graph_node)}" for graph_node in nodes),
            f"  return {','.join(f'%{_short(name)}' for name in node.writes)}",
        ]
        return "".join(f"{self._mark} {escape_comment(line)}\n" for line in lines)

    def _call(self, node: Node) -> str:
        meta = self._tensors.get(node.outputs[0]) if len(node.outputs) == 1 else None
        typed = f" : {self._describe(meta)}" if meta else " : "
        args = ", ".join(map(_format_argument, node.args))
        comma = "," if len(node.args) == 1 else ""
        kwargs = ", ".join(
            f"{_short(key)}: {_format_argument(arg)}" for key, arg in node.kwargs.items()
        )
        target = _short(node.target)
        qualified = target if target.startswith("_operator") else f"torch.ops.{target}"
        return (
            f"%{_short(node.name)}{typed}[num_users={self._users.get(node.name, 0)}] = "
            f"call_function[target={qualified}](args = ({args}{comma}), kwargs = {{{kwargs}}})"
        )

    def _describe(self, tensor: Buffer | TensorMeta) -> str:
        shape = f"{self._list(tensor.size)}{self._list(tensor.stride)}"
        return f'Tensor "{tensor.dtype.label}{shape}{self._device}"'

    def _list(self, sizes: tuple[Expr, ...]) -> str:
        list_text = self._lists.get(sizes)
        if list_text is None:
            list_text = self._lists[sizes] = f"[{', '.join(str(size) for size in sizes)}]"
        return list_text


def source_name(node: Node) -> str:
    """Return the call in the model's source that a node came from: torch's function, counted by
    name."""
    # torch writes the kind of the function before its name: builtin_function_or_method.addmm.
    called = node.origin.torch_function.partition(";")[0]
    return called.rpartition(".")[2] or node.name


def _format_argument(argument: Argument) -> str:
    if isinstance(argument, tuple):  # torch.export's lists
        return f"[{', '.join(_format_argument(part) for part in argument)}]"
    if isinstance(argument, Ref):
        return f"%{_short(argument.name)}"
    if isinstance(argument, DType):
        return argument.torch
    if isinstance(argument, Subgraph):
        return _short(argument.name)
    return _short(str(argument))


def _count_users(lowered: Lowered) -> Mapping[str, int]:
    """Count the nodes (including the output) that use each node's values."""
    producer = {value: node.name for node in lowered.graph.nodes for value in node.outputs}
    users: dict[str, set[str]] = {}
    for node in lowered.graph.nodes:
        for value in _refs((node.args, tuple(node.kwargs.values()))):
            users.setdefault(producer.get(value, value), set()).add(node.name)
    for value in lowered.graph.outputs:
        users.setdefault(producer.get(value, value), set()).add("output")
    return {name: len(nodes) for name, nodes in users.items()}


def _refs(argument: Argument | tuple[object, ...]) -> list[str]:
    if isinstance(argument, tuple):
        return [name for part in argument for name in _refs(part)]
    return [argument.name] if isinstance(argument, Ref) else []
