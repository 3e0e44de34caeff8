"""Scatter kernels on the CPU emulation: places that many sources reach, places outside the result,
every type; and that they compile for GPUs."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler import targets
from scheduler.benchmark.case_builder import make_case
from scheduler.build.compile import build
from scheduler.build.cuda.toolchains import NAME, cuda_compilers
from scheduler.build.flags import Flags
from scheduler.build.model import Build
from scheduler.build.toolchains import Search, bundled_clang
from scheduler.codegen.rocm.scatter import ScatterTemplate
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Graph
from scheduler.ir.index.functions import symbol
from scheduler.ir.operations import (
    ATOMIC,
    COMBINES,
    GroupKind,
    ReductionKind,
    Scatter,
    Store,
)
from scheduler.ir.values import Call, Const, IndexValue, Indirect, Load
from scheduler.reference import run as run_reference
from tests.support.caches import KEPT
from tests.support.memory import from_device, to_device
from tests.support.models_as_kernels import compile_all, prepare
from tests.support.models_as_kernels import run as run_kernels
from tests.unit.codegen.loopnest import at, axes, buffer, group, ints, run

GPU = tuple(targets.find(n) for n in ("gfx942", "gfx1100", "gfx1201"))
UFUNCS = {
    ReductionKind.SUM: np.add,
    ReductionKind.PROD: np.multiply,
    ReductionKind.MAX: np.maximum,
    ReductionKind.MIN: np.minimum,
}


def scatter(dtype: DType, kind: ReductionKind, rows: int, count: int, width: int) -> Any:
    """base[index[s], w] combined with source[s, w], for every s but the first."""
    into, sources = axes(rows, width), axes(count, width, prefix="s")
    place = Indirect(symbol("ind0"), Load("index", (sources[0].var,), DType.I64), *ints(rows))
    later = Call("gt", (IndexValue(sources[0].var, DType.I64), Const(0, DType.I64)), DType.BOOL)
    operation = Scatter(
        "op0",
        into,
        sources,
        kind,
        Load("source", at(sources), dtype),
        later,
        (place,),
        (place.symbol, sources[1].var),
        Store("out", at(into), Load("base", at(into), dtype)),
        (),
    )
    buffers = [
        buffer("index", DType.I64, (count,)),
        buffer("source", dtype, (count, width)),
        buffer("base", dtype, (rows, width)),
        buffer("out", dtype, (rows, width)),
    ]
    return group(GroupKind.SCATTER, [operation], buffers)


def caller_of(made: Any, wanted: Any = GPU) -> Any:
    node, lowered = made
    template = ScatterTemplate(node, lowered, wanted)
    return template.generate(template.default_config())


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        (DType.F32, ReductionKind.SUM),
        (DType.F64, ReductionKind.PROD),
        (DType.F32, ReductionKind.MAX),
        (DType.I64, ReductionKind.MIN),
    ],
)
def test_many_sources_meet_and_nothing_outside_is_written(
    dtype: DType, kind: ReductionKind
) -> None:
    """Negative places count from the end; others outside are clamped: ``run`` looks behind the
    buffers."""
    rng = np.random.default_rng(5)
    index = rng.integers(-7, 7, 400)
    index[7:10] = (-10_000, 10_000, 2**40)
    base, source = rng.integers(1, 3, (7, 3)), rng.integers(1, 3, (400, 3))
    if dtype.is_float:
        source = np.where(rng.random(source.shape) < 0.3, -0.5, source)
    memory = {
        "index": index,
        "base": to_device(base.ravel(), dtype),
        "source": to_device(source.ravel(), dtype),
    }
    if kind is ReductionKind.MAX:
        memory["source"][9 * 3] = np.nan
    got = run(caller_of(scatter(dtype, kind, 7, 400, 3)), memory)["out"]
    want = base.astype(dtype.reference_numpy)
    where = np.clip(np.where(index < 0, index + 7, index), 0, 6)
    given = from_device(memory["source"], dtype).reshape(source.shape)
    UFUNCS[kind].at(want, where[1:], given[1:].astype(want.dtype))
    assert np.isnan(want).any() == (kind is ReductionKind.MAX)
    np.testing.assert_allclose(from_device(got, dtype).reshape(7, 3), want, rtol=1e-5)


@pytest.mark.parametrize("count", [0, 60_000])
def test_a_sum_of_many_stays_within_the_bound_of_its_length(count: int) -> None:
    """The case knows how many may meet at one place, and draws places inside the result."""
    node, lowered = made = scatter(DType.F32, ReductionKind.SUM, 5, count, 2)
    case = make_case(node, lowered, {}, np.random.default_rng(2))
    assert case.inputs["index"].size == count
    assert (case.inputs["index"] >= 0).all() and (case.inputs["index"] < 5).all()
    got = from_device(run(caller_of(made), case.inputs)["out"], DType.F32).reshape(5, 2)
    bound = case.tolerances["out"].bound(case.expected["out"]) + case.carried["out"]
    assert (np.abs(got - case.expected["out"]) <= bound).all()
    assert (bound < 0.1 * np.abs(case.expected["out"]).max()).all()


def test_a_result_of_no_elements_is_not_launched() -> None:
    memory = {"index": np.zeros(4, np.int64), "base": np.zeros(0, np.float32)}
    memory["source"] = np.zeros(0, np.float32)
    made = run(caller_of(scatter(DType.F32, ReductionKind.SUM, 3, 4, 0)), memory)
    assert made["out"].size == 0


@pytest.mark.full(but=["gfx942"])
@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
def test_each_kind_compiles_for_gpus(target: str) -> None:
    found = targets.find(target)
    compilers = {one.name: one for one in cuda_compilers(Search(cache=KEPT))}
    toolchain = compilers[NAME] if target.startswith("sm") else bundled_clang(KEPT)
    sources = {}
    for dtype in ATOMIC if target == "gfx942" else ATOMIC[:1]:
        for kind in COMBINES:
            kernel = caller_of(scatter(dtype, kind, 7, 40, 3), (found,)).kernel
            sources[dtype, kind] = kernel.source.replace(kernel.name, f"k{len(sources)}")
    includes = dict.fromkeys(
        line for text in sources.values() for line in text.split("\n") if line.startswith("#inc")
    )
    bodies = (
        "\n".join(line for line in text.split("\n") if not line.startswith("#inc"))
        for text in sources.values()
    )
    spaces = (f"namespace n{i} {{\n{body}\n}}\n" for i, body in enumerate(bodies))
    made = build("\n".join((*includes, *spaces)), "k0", found, toolchain, KEPT)
    assert isinstance(made, Build), made
    assert {f"k{i}_kernel" for i in range(len(sources))} <= set(made.resources)
    listing = (made.directory / "kernel.s").read_text()
    wanted = {"gfx942": "global_atomic_add_f32", "sm_90": "ADD.F32", "gfx1100": "global_atomic"}
    assert wanted[target] in listing


USES = [
    ("writes", "test_scatter"),
    ("writes", "test_combining_in_each_type"),
    ("writes", "test_index_put"),
    ("writes", "test_masks"),
    ("writes", "test_slices_along_a_dimension"),
    ("writes", "test_nothing_is_written_from_nothing"),
    ("parts", "test_views_by_strides"),
    ("parts", "test_bags_of_rows"),
    ("parts", "test_histograms"),
]


def agree(
    module: Any, args: tuple[Any, ...], folder: Path, *, decompose: bool = False, **options: Any
) -> Graph:
    """All kernels of the exported graph, run on the emulation, give what the reference gives."""
    from tests.unit.torch_export import export, inputs_of

    target = targets.find("cpu")
    program, graph = export(module, args, folder, decompose=decompose, **options)
    values = inputs_of(program, graph, args)
    expected = run_reference(graph, values, {})
    one = prepare(graph, target)
    got = run_kernels(one, compile_all([one], target, KEPT, Flags()), target, values, {})
    for name, value in expected.items():
        np.testing.assert_allclose(
            np.asarray(got[name], float), np.asarray(value, float), rtol=1e-9, atol=1e-9
        )
    return graph


@pytest.mark.full(but=["writes-test_scatter"])
@pytest.mark.parametrize(("family", "name"), USES)
def test_the_uses_of_ops_as_kernels(
    family: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    uses = importlib.import_module(f"tests.unit.test_torch_ops_{family}")
    monkeypatch.setattr(uses, "agree", agree)
    function = getattr(uses, name)
    decomposes = "decompose" in inspect.signature(function).parameters
    function(tmp_path, **({"decompose": False} if decomposes else {}))


def test_sums_of_16_bit_floats_are_rounded_once(tmp_path: Path) -> None:
    """A thousand additions in f16 or bf16 would stop growing; torch's own do."""
    torch = pytest.importorskip("torch")
    from tests.unit.torch_export import as_module, export, inputs_of

    half, brain = torch.ones(3, 2).half(), torch.ones(3, 2).bfloat16()
    index = torch.tensor([1] * 3000 + [2])

    def add(half: Any, brain: Any, index: Any) -> Any:
        rows = [t[:1].expand(3001, 2) for t in (half, brain)]
        return half.index_add(0, index, rows[0]), brain.index_add(0, index, rows[1])

    args = (half, brain, index)
    target = targets.find("cpu")
    program, graph = export(as_module(add), args, tmp_path)
    one = prepare(graph, target)
    values = inputs_of(program, graph, args)
    path = compile_all([one], target, KEPT, Flags())
    got = run_kernels(one, path, target, values, {})
    want = np.array([[1, 1], [3001, 3001], [2, 2]])
    for name, eps in zip(graph.outputs, (DType.F16.eps, DType.BF16.eps), strict=True):
        np.testing.assert_allclose(got[name], want, rtol=2 * eps)
