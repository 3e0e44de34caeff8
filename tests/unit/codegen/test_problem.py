"""A problem's identity: what things are called does not count, what has to be computed does."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy

from scheduler import pipeline, samples
from scheduler.codegen.problem import problem_of
from scheduler.codegen.title import title
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Graph, SymbolInfo
from scheduler.ir.index.functions import symbol
from scheduler.ir.operations import Axis, Buffer, BufferKind, Contraction, GroupKind, Lowered, Store
from scheduler.ir.values import Accumulator, Call, Load, Value
from tests.unit.codegen.test_attention_kernels import attention_node

S0 = symbol("s0")


def lowered(
    names: tuple[str, str, str] = ("a", "b", "c"),
    dtype: DType = DType.F16,
    a_stride: tuple[int, int] = (64, 1),
    prefix: str = "",
    epilogue: bool = False,
) -> tuple[SchedulerNode, Lowered]:
    """C[s0, 32] = A[s0, 64] B[64, 32], with a relu behind it or not."""
    a, b, c = names
    m, n, k = (symbol(prefix + letter) for letter in "mnk")
    buffers = {
        a: Buffer(a, dtype, (S0, sympy.Integer(64)), _ints(a_stride), BufferKind.INPUT),
        b: Buffer(b, dtype, _ints((64, 32)), _ints((32, 1)), BufferKind.PARAMETER),
        c: Buffer(c, dtype, (S0, sympy.Integer(32)), _ints((32, 1)), BufferKind.OUTPUT),
    }
    value: Value = Accumulator(DType.F32)
    if epilogue:
        value = Call("relu", (value,), DType.F32)
    contraction = Contraction(
        name=f"op_{prefix}",
        template="gemm",
        problem="mm",
        batch=(),
        m=(Axis(m, S0),),
        n=(Axis(n, sympy.Integer(32)),),
        k=(Axis(k, sympy.Integer(64)),),
        a=Load(a, (m, k), dtype),
        b=Load(b, (k, n), dtype),
        stores=(Store(c, (m, n), value),),
        nodes=(f"mm_{prefix}",),
    )
    node = SchedulerNode(
        contraction.name,
        GroupKind.GEMM,
        (contraction,),
        (S0 * 32, sympy.Integer(1)),
        (a, b),
        (c,),
        contraction.nodes,
    )
    symbols = {"s0": SymbolInfo("s0", 128, 2, None), "s9": SymbolInfo("s9", 4, 1, 8)}
    graph = Graph("g", "d" * 64, symbols, (), (), (), {}, {})
    return node, Lowered(graph, buffers, (contraction,), (a,), (c,))


def _ints(values: tuple[int, ...]) -> tuple[sympy.Integer, ...]:
    return tuple(sympy.Integer(value) for value in values)


def test_names_do_not_count() -> None:
    one = problem_of(*lowered())
    other = problem_of(*lowered(names=("buf7", "w", "out"), prefix="x"))
    assert one == other
    assert one.op == "mm"
    assert one.summary.startswith("s0 ")


@pytest.mark.parametrize(
    "changed",
    [{"dtype": DType.BF16}, {"a_stride": (128, 1)}, {"a_stride": (1, 64)}, {"epilogue": True}],
    ids=["dtype", "row stride", "layout", "epilogue"],
)
def test_what_is_computed_counts(changed: dict[str, object]) -> None:
    assert problem_of(*lowered()).digest != problem_of(*lowered(**changed)).digest


def test_a_matrix_with_itself_is_another_problem() -> None:
    """mm(x, x) reads one buffer; a kernel for two may not be chosen by its measurements."""
    node, plan = lowered(a_stride=(32, 1))
    main = node.members[0]
    assert isinstance(main, Contraction)
    b = main.b
    assert isinstance(b, Load)
    alone = replace(main, b=replace(b, buffer="a"))
    same = problem_of(replace(node, members=(alone,)), plan)
    assert same.digest != problem_of(node, plan).digest


def test_only_the_symbols_in_use_are_named() -> None:
    assert problem_of(*lowered()).symbols == {"s0": {"hint": 128, "min": 2, "max": None}}


def test_what_stays_in_registers_is_part_of_the_problem() -> None:
    plan = pipeline.schedule(pipeline.lower(pipeline.load(samples.path("gpt2_2layer"))))
    node = next(node for node in plan.nodes if len(node.members) > 1)
    results = tuple(name for member in node.members for name in member.writes)
    assert set(node.writes) < set(results)
    stored = replace(node, writes=results)
    assert problem_of(stored, plan.lowered).digest != problem_of(node, plan.lowered).digest


def test_sizes_count_where_they_are_used_and_no_others() -> None:
    problem = problem_of(*lowered())
    at = problem.key({"s0": 16, "s9": 1})
    assert at == problem.key({"s0": 16, "s9": 8})
    assert at != problem.key({"s0": 17, "s9": 1})
    assert at != problem_of(*lowered(dtype=DType.BF16)).key({"s0": 16, "s9": 1})


def test_a_problem_is_called_by_its_operands_or_its_loops() -> None:
    """As ``AUTOTUNE`` logs call it: batch, rows and columns of products, loops of the others."""
    plan = pipeline.schedule(pipeline.lower(pipeline.load(samples.path("llama_2layer"))))
    titles = {title(node, plan.lowered) for node in plan.nodes if node.kind.name != "EXTERN"}
    assert "add_mean_mul_pow_rsqrt_to(s70x512) bf16" in titles
    node, small = lowered()
    assert title(node, small) == "mm(128x64, 64x32) f16"


def test_the_problem_of_a_run_is_called_by_the_sizes_that_are_measured() -> None:
    node, small = lowered()
    assert title(node, small, {"s0": 16}) == "mm(16x64, 64x32) f16"
    plan = pipeline.schedule(pipeline.lower(pipeline.load(samples.path("llama_2layer"))))
    titles = {title(n, plan.lowered, {"s70": 3}) for n in plan.nodes if n.kind.name != "EXTERN"}
    assert "add_mean_mul_pow_rsqrt_to(3x512) bf16" in titles
    assert not any("s70" in one for one in titles)


def test_a_soft_cap_and_rows_that_give_nan_are_other_problems_and_the_rest_is_as_it_was() -> None:
    digests = {
        problem_of(*attention_node(DType.F16, 40, 70, 64, 64, causal=True, **options)).digest
        for options in ({}, {"cap": 50.0}, {"cap": 30.0}, {"safe": False})
    }
    assert len(digests) == 4
    assert "4a1a587879f1e91bb0d164be47bc86ed64a660bfd8f0a2977b8658628fd02db2" in digests, (
        "recorded before there were caps"
    )
    assert (
        "causal cap 50"
        in problem_of(*attention_node(DType.F16, 8, 8, 16, 16, causal=True, cap=50.0)).summary
    )
