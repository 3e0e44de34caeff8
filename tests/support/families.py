"""The kernel families whose modelled figures are held: a problem of each, at its real size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scheduler import pipeline
from scheduler.build.cache import CodeCache
from scheduler.build.model import Build, Toolchain
from scheduler.bundle.manifest import request_of
from scheduler.cycles.kernel_model import model_kernel
from scheduler.cycles.launch_inputs import prepare_launches
from scheduler.cycles.report import LaunchReport, Report
from scheduler.errors import UserError
from scheduler.fusion import schedule
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import GraphInput, InputKind, Node, Ref, SymbolInfo
from scheduler.ir.index.functions import evaluate, symbol
from scheduler.lowering import lower
from scheduler.targets import Target, boards
from tests.support.stores import narrow_share, spilled
from tests.unit.lowering.graphs import graph, meta, node

F16 = DType.F16
_ELEMENTS = symbol("s0")
_SYMBOLS = {"s0": SymbolInfo("s0", 4096 * 4096, 1, None)}


@dataclass(frozen=True)
class Family:
    """``work`` is what the problem needs at least: floating-point operations where ``matrix``,
    else bytes of memory. ``few_results``: so few that it does not matter how they are stored."""

    name: str
    plan: Callable[[], Schedule]
    work: float
    matrix: bool
    few_results: bool = False


@dataclass(frozen=True)
class Figures:
    """Of a family on the target's first board: the share of its peak in matrix operations or of
    its memory's bandwidth; the worst conflict in LDS that costs anything (cycles over those
    without), how busy the matrix pipes are in the loop that takes longest (0 without one);
    registers that lie in memory; the share of what is stored that is stored fewer than 8 bytes at
    once."""

    time_us: float
    of_peak: float
    conflict: float
    matrix_busy: float
    spills: int
    narrow: float


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


def linear(m: int, n: int, k: int, *, gelu: bool = False) -> Schedule:
    nodes = [node("y", "aten.linear.default", Ref("x"), Ref("w"), Ref("b"))]
    sizes: dict[str, tuple[object, ...]] = {"x": (m, k), "w": (n, k), "b": (n,), "y": (m, n)}
    if gelu:
        nodes.append(node("z", "aten.gelu.default", Ref("y")))
        sizes["z"] = (m, n)
    return _of(nodes, sizes, "xwb")


def product(m: int, n: int, k: int) -> Schedule:
    nodes = [node("y", "aten.mm.default", Ref("x"), Ref("w"))]
    return _of(nodes, {"x": (m, k), "w": (k, n), "y": (m, n)}, "xw")


def attention(
    batch: int, heads: int, length: int, depth: int, *, queries: int | None = None
) -> Schedule:
    """Causal, of as many queries as keys; of another number of ``queries`` without a mask."""
    keys = (batch, heads, length, depth)
    asked = (batch, heads, queries or length, depth)
    name = "aten.scaled_dot_product_attention.default"
    one = node("o", name, Ref("q"), Ref("k"), Ref("v"), is_causal=queries is None)
    return _of([one], {"q": asked, "k": keys, "v": keys, "o": asked}, "qkv")


def convolution(
    batch: int, channels: int, side: int, filters: int | None = None, kernel: int = 3
) -> Schedule:
    """Channels last, as large as it was; as many filters as channels where nothing else is said."""
    made = filters or channels
    size, out = (batch, channels, side, side), (batch, made, side, side)
    weight = (kernel * kernel * channels, 1, kernel * channels, channels)
    tensors = {
        "x": meta(F16, *size, stride=_last(size)),
        "w": meta(F16, made, channels, kernel, kernel, stride=weight),
        "y": meta(F16, *out, stride=_last(out)),
    }
    args = (Ref("x"), Ref("w"), None, (1, 1), (kernel // 2,) * 2, (1, 1), 1)
    one = node("y", "aten.conv2d.default", *args)
    inputs = [GraphInput(name, InputKind.USER) for name in "xw"]
    return schedule(lower(graph(inputs, [one], tensors, ("y",))))


def _last(size: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of images whose channels are contiguous."""
    _, channels, height, width = size
    return (height * width * channels, 1, width * channels, channels)


def rows(target: str, size: tuple[int, ...], *args: object) -> Schedule:
    """A function of one tensor, as large."""
    one = node("y", target, Ref("x"), *args)  # type: ignore[arg-type]
    return _of([one], {"x": size, "y": size}, "x")


def unary(target: str, *args: object, dynamic: bool = False) -> Schedule:
    size = (_ELEMENTS,) if dynamic else (4096, 4096)
    one = node("y", target, Ref("x"), *args)  # type: ignore[arg-type]
    return _of([one], {"x": size, "y": size}, "x", dynamic=dynamic)


def reduced(target: str, made: tuple[object, ...], *args: object) -> Schedule:
    """Of 4096x4096 elements."""
    one = node("y", target, Ref("x"), *args)  # type: ignore[arg-type]
    return _of([one], {"x": (4096, 4096), "y": made}, "x")


OUTPUTS, INPUTS, KEYS = 14336, 4096, 16384


def of_rows(rows: int) -> Family:
    """A linear layer of few rows, bound by reading its weights."""
    return Family(
        f"gemm, {rows} row{'s' * (rows > 1)}",
        lambda: linear(rows, OUTPUTS, INPUTS),
        OUTPUTS * INPUTS * 2.0,
        False,
    )


_WHOLE = 4096 * 4096 * 2 * 2.0  # bytes that are read and written

FAMILIES = (
    Family("gemm + gelu", lambda: linear(4096, 4096, 4096, gelu=True), 2 * 4096.0**3, True),
    Family("gemm, B row-major", lambda: product(4096, 4096, 4096), 2 * 4096.0**3, True),
    of_rows(1),
    of_rows(16),
    of_rows(64),
    Family(
        "attention, causal",
        lambda: attention(2, 16, 4096, 128),
        4 * 2 * 16 * 4096.0**2 * 128 / 2,
        True,
    ),
    Family(
        f"attention, one query, {KEYS} keys",
        lambda: attention(2, 16, KEYS, 128, queries=1),
        2 * 2 * 16 * KEYS * 128 * 2.0,
        False,
    ),
    Family(
        "convolution 3x3", lambda: convolution(32, 256, 14), 2 * 32 * 14 * 14 * 256.0**2 * 9, True
    ),
    Family("softmax", lambda: unary("aten.softmax.int", -1), _WHOLE, False),
    Family(
        "softmax, long rows",
        lambda: rows("aten.softmax.int", (256, 131072), -1),
        256 * 131072 * 2 * 2.0,
        False,
    ),
    Family("gelu", lambda: unary("aten.gelu.default"), _WHOLE, False),
    Family("gelu, any size", lambda: unary("aten.gelu.default", dynamic=True), _WHOLE, False),
    Family(
        "layer norm",
        lambda: unary("aten.layer_norm.default", [4096], None, None, 1e-5),
        _WHOLE,
        False,
    ),
    Family(
        "sum of all", lambda: reduced("aten.sum.default", ()), _WHOLE / 2, False, few_results=True
    ),
    Family(
        "column sums",
        lambda: reduced("aten.sum.dim_IntList", (4096,), (0,)),
        _WHOLE / 2,
        False,
        few_results=True,
    ),
)


@dataclass(frozen=True)
class ModelledKernel:
    """A built kernel of a plan, and what the model says of it."""

    build: Build
    listing: str
    report: Report


def modelled(
    plan: Schedule,
    target: Target,
    toolchain: Toolchain,
    cache: CodeCache,
    choose: pipeline.Chooser | None = None,
) -> tuple[ModelledKernel, ...]:
    """The kernels of a plan, the default ones where nothing is chosen, built and modelled on the
    target's first board at the sizes' hints. ``UserError`` where one is not built."""
    made = pipeline.generate(plan, [target], choose)
    manifest = made.manifest()
    results = pipeline.build_kernels(made.kernels, [target], lambda *_: toolchain, cache)
    bindings = {name: info.hint for name, info in manifest.symbols.items()}
    found = []
    for call in made.calls:
        entry = manifest.kernels[call.kernel]
        result = results[call.kernel, target.name]
        if not isinstance(result, Build):
            raise UserError(f"{result.reason}\n{result.detail}")
        listing = (result.directory / "kernel.s").read_text()
        request = request_of(manifest, call, target.name, bindings)
        workspace = evaluate(entry.workspace_bytes, request.numbers)
        launches, memory = prepare_launches(entry.launches, request, workspace_bytes=workspace)
        board = boards(target.name)[0]
        report = model_kernel(
            *(listing, target, board, launches, memory), kernel=call.kernel, sizes=bindings
        )
        found.append(ModelledKernel(result, listing, report))
    return tuple(found)


def reports(
    family: Family, target: Target, toolchain: Toolchain, cache: CodeCache
) -> tuple[Report, ...]:
    """The default kernels of a family, built and modelled on the target's first board."""
    return tuple(one.report for one in modelled(family.plan(), target, toolchain, cache))


def figures(family: Family, target: Target, made: Sequence[ModelledKernel]) -> Figures:
    """What is held of a family's kernels."""
    board, found = boards(target.name)[0], [one.report for one in made]
    time_us = sum(report.time_us.mid for report in found)
    launches = [launch for report in found for launch in report.launches]
    peak = board.peak_flops("f16") if family.matrix else float(board.memory_bytes_per_s)
    assert peak is not None
    return Figures(
        round(time_us, 2),
        round(family.work / (time_us * 1e-6) / peak, 4),
        round(max(map(conflict, launches)), 3),
        round(matrix_busy(longest(found)), 3),
        sum(spilled(one.listing) for one in made),
        round(narrow_share([(one.listing, one.report) for one in made], target), 3),
    )


def longest(found: Sequence[Report]) -> LaunchReport:
    """Of all kernels' launches the one that takes the longest."""
    launches = [launch for report in found for launch in report.launches]
    return max(launches, key=lambda launch: launch.time_us.mid)


def conflict(launch: LaunchReport) -> float:
    """All cycles of LDS over those without conflicts, over the instructions of the launch."""
    counted = [
        (each.executed, each.conflict)
        for each in launch.instructions
        if each.conflict is not None and each.executed
    ]
    executed = sum(count for count, _ in counted)
    return sum(count * factor for count, factor in counted) / executed if executed else 1.0


def matrix_busy(launch: LaunchReport) -> float:
    """In the loop that takes longest; 0 without one."""
    return (
        max(launch.loops, key=lambda each: each.iterations * each.cycles).matrix_busy
        if launch.loops
        else 0.0
    )
