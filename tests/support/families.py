"""The kernel families whose modelled figures are held: a problem of each, at its real size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scheduler import pipeline
from scheduler.build.cache import CodeCache
from scheduler.build.model import Build, Toolchain
from scheduler.bundle.requests import request_of
from scheduler.cycles.facade import model_kernel
from scheduler.cycles.problem import launches_at
from scheduler.cycles.report import LaunchReport, Report
from scheduler.fusion import schedule
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import GraphInput, InputKind, Node, Ref, SymbolInfo
from scheduler.ir.index.functions import evaluate, symbol
from scheduler.lowering import lower
from scheduler.targets import Board, Target, boards
from tests.unit.lowering.graphs import graph, meta, node

F16 = DType.F16
_ELEMENTS = symbol("s0")
_SYMBOLS = {"s0": SymbolInfo("s0", 4096 * 4096, 1, None)}


@dataclass(frozen=True)
class Family:
    """``work`` is what the problem needs at least: floating-point operations where ``matrix``,
    else bytes of memory."""

    name: str
    plan: Callable[[], Schedule]
    work: float
    matrix: bool


@dataclass(frozen=True)
class Figures:
    """Of a family on the target's first board: the share of its peak in matrix operations or of
    its memory's bandwidth; the worst conflict in LDS that costs anything (cycles over those
    without), how busy the matrix pipes are in the loop that takes longest (0 without one)."""

    time_us: float
    of_peak: float
    conflict: float
    matrix_busy: float


def _of(
    nodes: list[Node],
    sizes: Mapping[str, tuple[object, ...]],
    inputs: str,
    *,
    dynamic: bool = False,
) -> Schedule:
    """A graph of these nodes; its last one is the output."""
    tensors = {name: meta(F16, *size) for name, size in sizes.items()}
    given = [GraphInput(name, InputKind.USER) for name in inputs]
    symbols = _SYMBOLS if dynamic else None
    return schedule(lower(graph(given, nodes, tensors, (nodes[-1].name,), symbols)))


def _linear(m: int, n: int, k: int, *, gelu: bool = False) -> Schedule:
    nodes = [node("y", "aten.linear.default", Ref("x"), Ref("w"), Ref("b"))]
    sizes: dict[str, tuple[object, ...]] = {"x": (m, k), "w": (n, k), "b": (n,), "y": (m, n)}
    if gelu:
        nodes.append(node("z", "aten.gelu.default", Ref("y")))
        sizes["z"] = (m, n)
    return _of(nodes, sizes, "xwb")


def product(m: int, n: int, k: int) -> Schedule:
    nodes = [node("y", "aten.mm.default", Ref("x"), Ref("w"))]
    return _of(nodes, {"x": (m, k), "w": (k, n), "y": (m, n)}, "xw")


def _attention(batch: int, heads: int, length: int, depth: int) -> Schedule:
    size = (batch, heads, length, depth)
    name = "aten.scaled_dot_product_attention.default"
    one = node("o", name, Ref("q"), Ref("k"), Ref("v"), is_causal=True)
    return _of([one], dict.fromkeys("qkvo", size), "qkv")


def _convolution(batch: int, channels: int, side: int) -> Schedule:
    """3x3, channels last."""
    size = (batch, channels, side, side)
    stride = (side * side * channels, 1, side * channels, channels)
    weight = (9 * channels, 1, 3 * channels, channels)
    tensors = {
        "x": meta(F16, *size, stride=stride),
        "w": meta(F16, channels, channels, 3, 3, stride=weight),
        "y": meta(F16, *size, stride=stride),
    }
    args = (Ref("x"), Ref("w"), None, (1, 1), (1, 1), (1, 1), 1)
    one = node("y", "aten.conv2d.default", *args)
    inputs = [GraphInput(name, InputKind.USER) for name in "xw"]
    return schedule(lower(graph(inputs, [one], tensors, ("y",))))


def unary(target: str, *args: object, dynamic: bool = False) -> Schedule:
    size = (_ELEMENTS,) if dynamic else (4096, 4096)
    one = node("y", target, Ref("x"), *args)  # type: ignore[arg-type]
    return _of([one], {"x": size, "y": size}, "x", dynamic=dynamic)


_WHOLE = 4096 * 4096 * 2 * 2.0  # bytes that are read and written

FAMILIES = (
    Family("gemm + gelu", lambda: _linear(4096, 4096, 4096, gelu=True), 2 * 4096.0**3, True),
    Family("gemm, B row-major", lambda: product(4096, 4096, 4096), 2 * 4096.0**3, True),
    Family("gemm, 16 rows", lambda: _linear(16, 14336, 4096), 14336 * 4096 * 2.0, False),
    Family(
        "attention, causal",
        lambda: _attention(2, 16, 4096, 128),
        4 * 2 * 16 * 4096.0**2 * 128 / 2,
        True,
    ),
    Family(
        "convolution 3x3", lambda: _convolution(32, 256, 14), 2 * 32 * 14 * 14 * 256.0**2 * 9, True
    ),
    Family("softmax", lambda: unary("aten.softmax.int", -1), _WHOLE, False),
    Family("gelu", lambda: unary("aten.gelu.default"), _WHOLE, False),
    Family("gelu, any size", lambda: unary("aten.gelu.default", dynamic=True), _WHOLE, False),
    Family(
        "layer norm",
        lambda: unary("aten.layer_norm.default", [4096], None, None, 1e-5),
        _WHOLE,
        False,
    ),
)


def reports(
    family: Family, target: Target, toolchain: Toolchain, cache: CodeCache
) -> tuple[Report, ...]:
    """The default kernels of a family, built and modelled on the target's first board."""
    made = pipeline.generate(family.plan(), [target])
    manifest = made.manifest()
    results = pipeline.build_kernels(made.kernels, [target], lambda *_: toolchain, cache)
    bindings = {name: info.hint for name, info in manifest.symbols.items()}
    found = []
    for call in made.calls:
        entry = manifest.kernels[call.kernel]
        result = results[call.kernel, target.name]
        assert isinstance(result, Build), f"{result.reason}\n{result.detail}"
        listing = (result.directory / "kernel.s").read_text()
        request = request_of(manifest, call, target.name, bindings)
        workspace = evaluate(entry.workspace_bytes, request.numbers)
        launches, memory = launches_at(entry.launches, request, workspace_bytes=workspace)
        board = boards(target.name)[0]
        found.append(
            model_kernel(
                *(listing, target, board, launches, memory), kernel=call.kernel, sizes=bindings
            )
        )
    return tuple(found)


def figures(family: Family, board: Board, found: tuple[Report, ...]) -> Figures:
    """What is held of a family's reports."""
    time_us = sum(report.time_us.mid for report in found)
    launches = [launch for report in found for launch in report.launches]
    peak = board.peak_flops("f16") if family.matrix else float(board.memory_bytes_per_s)
    assert peak is not None
    longest = max(launches, key=lambda launch: launch.time_us.mid)
    return Figures(
        round(time_us, 2),
        round(family.work / (time_us * 1e-6) / peak, 4),
        round(max(map(_conflict, launches)), 3),
        round(_matrix_busy(longest), 3),
    )


def _conflict(launch: LaunchReport) -> float:
    """All cycles of LDS over those without conflicts, over the instructions of the launch."""
    counted = [
        (each.executed, each.conflict)
        for each in launch.instructions
        if each.conflict is not None and each.executed
    ]
    executed = sum(count for count, _ in counted)
    return sum(count * factor for count, factor in counted) / executed if executed else 1.0


def _matrix_busy(launch: LaunchReport) -> float:
    return (
        max(launch.loops, key=lambda each: each.iterations * each.cycles).matrix_busy
        if launch.loops
        else 0.0
    )
