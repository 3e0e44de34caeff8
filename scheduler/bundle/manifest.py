"""``manifest.json``: what a bundle holds and how to run it, as dataclasses and as JSON.

Expressions over the model's symbols (buffer sizes, scalar arguments of calls) and over a kernel's
own scalar arguments (grids, workspace) travel as text (``ir/index/text.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler.codegen.kernel import CallVariant, KernelArg, KernelCall, Launch, RenderedKernel
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr, SymbolInfo
from scheduler.ir.index.text import parse_expr, print_expr
from scheduler.ir.operations import Buffer, BufferKind

SCHEMA = 1


@dataclass(frozen=True)
class KernelEntry:
    """A kernel of the bundle: everything of a ``RenderedKernel`` but the text of its source."""

    template: str
    config: Mapping[str, int | str | bool]
    source: str  # path within the bundle
    symbol: str
    nodes: tuple[str, ...]
    workspace_bytes: Expr
    args: tuple[KernelArg, ...]
    launches: tuple[Launch, ...]


@dataclass(frozen=True)
class ExternEntry:
    """A node that runs through the reference, at its place among the calls."""

    node: str
    op: str
    reason: str
    position: int  # runs before the call of this index
    outputs: tuple[str, ...] = ()  # buffers that it fills


@dataclass(frozen=True)
class Manifest:
    """All that a launcher needs to know."""

    graph_name: str
    graph_digest: str
    symbols: Mapping[str, SymbolInfo]
    targets: tuple[str, ...]
    buffers: Mapping[str, Buffer]
    kernels: Mapping[str, KernelEntry]
    calls: tuple[KernelCall, ...]
    externs: tuple[ExternEntry, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    storage: Mapping[str, str] = field(default_factory=dict)  # buffer -> pool
    pools: Mapping[str, Expr] = field(default_factory=dict)  # pool -> bytes
    fused: bool = True  # whether the schedule was made with fusion
    split: tuple[str, ...] = ()  # fused nodes that were split again

    def to_json(self) -> dict[str, Any]:
        """The manifest as ``schema.json`` describes it."""
        return {
            "schema": SCHEMA,
            "graph": {
                "name": self.graph_name,
                "digest": self.graph_digest,
                "symbols": {n: _symbol_json(s) for n, s in sorted(self.symbols.items())},
            },
            "targets": list(self.targets),
            "buffers": {n: _buffer_json(b) for n, b in self.buffers.items()},
            "storage": dict(self.storage),
            "pools": {name: print_expr(size) for name, size in self.pools.items()},
            "kernels": {n: _kernel_json(k) for n, k in sorted(self.kernels.items())},
            "calls": [_call_json(call) for call in self.calls],
            "externs": [_extern_json(e) for e in self.externs],
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "fused": self.fused,
        } | ({"split": list(self.split)} if self.split else {})

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Manifest:
        """From JSON that fits the schema (``reader.py`` checks that first)."""
        graph = data["graph"]
        return Manifest(
            graph_name=graph["name"],
            graph_digest=graph["digest"],
            symbols={n: _symbol(n, s) for n, s in graph["symbols"].items()},
            targets=tuple(data["targets"]),
            buffers={n: _buffer(n, b) for n, b in data["buffers"].items()},
            kernels={n: _kernel(k) for n, k in data["kernels"].items()},
            calls=tuple(_call(c, data["buffers"]) for c in data["calls"]),
            externs=tuple(_extern(e) for e in data["externs"]),
            inputs=tuple(data["inputs"]),
            outputs=tuple(data["outputs"]),
            storage=dict(data.get("storage", {})),
            pools={name: parse_expr(size) for name, size in data.get("pools", {}).items()},
            fused=data.get("fused", True),
            split=tuple(data.get("split", ())),
        )


def kernel_entry(kernel: RenderedKernel) -> KernelEntry:
    """The manifest's entry for a rendered kernel."""
    return KernelEntry(
        template=kernel.template,
        config=dict(kernel.config),
        source=kernel.source_path,
        symbol=kernel.symbol,
        nodes=kernel.nodes,
        workspace_bytes=kernel.workspace_bytes,
        args=kernel.args,
        launches=kernel.launches,
    )


def _symbol_json(symbol: SymbolInfo) -> dict[str, Any]:
    return {"hint": symbol.hint, "min": symbol.minimum, "max": symbol.maximum}


def _symbol(name: str, data: Mapping[str, Any]) -> SymbolInfo:
    return SymbolInfo(name, data["hint"], data["min"], data["max"])


def _buffer_json(buffer: Buffer) -> dict[str, Any]:
    return {
        "dtype": buffer.dtype.label,
        "size": [print_expr(size) for size in buffer.size],
        "stride": [print_expr(stride) for stride in buffer.stride],
        "kind": str(buffer.kind),
        "source_name": buffer.source_name,
    }


def _buffer(name: str, data: Mapping[str, Any]) -> Buffer:
    return Buffer(
        name,
        DType.from_label(data["dtype"]),
        tuple(parse_expr(text) for text in data["size"]),
        tuple(parse_expr(text) for text in data["stride"]),
        BufferKind(data["kind"]),
        data["source_name"],
    )


def _kernel_json(kernel: KernelEntry) -> dict[str, Any]:
    return {
        "template": kernel.template,
        "config": dict(kernel.config),
        "source": kernel.source,
        "symbol": kernel.symbol,
        "nodes": list(kernel.nodes),
        "workspace_bytes": print_expr(kernel.workspace_bytes),
        "args": [
            {"name": a.name, "type": a.type, "output": a.is_output, "dtype": a.dtype}
            for a in kernel.args
        ],
        "launches": [_launch_json(launch) for launch in kernel.launches],
    }


def _kernel(data: Mapping[str, Any]) -> KernelEntry:
    return KernelEntry(
        template=data["template"],
        config=dict(data["config"]),
        source=data["source"],
        symbol=data["symbol"],
        nodes=tuple(data["nodes"]),
        workspace_bytes=parse_expr(data["workspace_bytes"]),
        args=tuple(
            KernelArg(a["name"], a["type"], a.get("output", False), a.get("dtype", ""))
            for a in data["args"]
        ),
        launches=tuple(_launch(launch) for launch in data["launches"]),
    )


def _launch_json(launch: Launch) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "function": launch.function,
        "grid": [print_expr(size) for size in launch.grid],
        "block": list(launch.block),
        "lds_bytes": launch.lds_bytes,
        "args": list(launch.args),
    }
    return facts | {"dynamic_lds": True} if launch.dynamic_lds else facts


def _launch(data: Mapping[str, Any]) -> Launch:
    x, y, z = (parse_expr(text) for text in data["grid"])
    block_x, block_y, block_z = data["block"]
    return Launch(
        data["function"],
        (x, y, z),
        (block_x, block_y, block_z),
        data["lds_bytes"],
        tuple(data["args"]),
        data.get("dynamic_lds", False),
    )


def _call_json(call: KernelCall) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "kernel": call.kernel,
        "args": _call_args_json(call.args),
        "nodes": list(call.nodes),
    }
    variants = [
        {
            "symbol": variant.symbol,
            "at_most": variant.at_most,
            "kernel": variant.kernel,
            "args": _call_args_json(variant.args),
        }
        for variant in call.variants
    ]
    return facts | {"variants": variants} if variants else facts


def _call_args_json(args: Mapping[str, str | Expr]) -> dict[str, str]:
    return {n: v if isinstance(v, str) else print_expr(v) for n, v in args.items()}


def _call(data: Mapping[str, Any], buffers: Mapping[str, Any]) -> KernelCall:
    variants = tuple(
        CallVariant(one["symbol"], one["at_most"], one["kernel"], _call_args(one["args"], buffers))
        for one in data.get("variants", ())
    )
    args = _call_args(data["args"], buffers)
    return KernelCall(data["kernel"], args, tuple(data.get("nodes", ())), variants)


def _call_args(data: Mapping[str, str], buffers: Mapping[str, Any]) -> dict[str, str | Expr]:
    return {n: v if v in buffers else parse_expr(v) for n, v in data.items()}


def _extern_json(extern: ExternEntry) -> dict[str, Any]:
    return {
        "node": extern.node,
        "op": extern.op,
        "reason": extern.reason,
        "position": extern.position,
        "outputs": list(extern.outputs),
    }


def _extern(data: Mapping[str, Any]) -> ExternEntry:
    outputs = tuple(data.get("outputs", ()))
    return ExternEntry(data["node"], data["op"], data["reason"], data["position"], outputs)
