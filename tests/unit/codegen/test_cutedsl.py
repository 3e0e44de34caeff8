"""CuteDSL kernels: their names and comments, what has no text, random trees against NumPy."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from scheduler.build.compile import build
from scheduler.build.model import Build
from scheduler.build.toolchains import Search, find_target_toolchains, pick_toolchain
from scheduler.codegen.cutedsl.scheduling import CuteDSLScheduling
from scheduler.codegen.cutedsl.template import PartialRender
from scheduler.codegen.languages import CUTEDSL_SOURCE
from scheduler.codegen.names import is_named_by_code
from scheduler.codegen.scheduling import scheduling_for
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.operations import GroupKind, Pointwise, Store
from scheduler.ir.values import Call, Cast, Const, Value
from scheduler.targets import find
from tests.support import cutedsl
from tests.support.caches import KEPT
from tests.support.memory import from_device, to_device
from tests.support.pointwise_trees import (
    TYPES,
    as_stored,
    functions_problem,
    problem,
    random_memory,
    random_problem,
    read,
    tree,
)
from tests.unit.codegen.cutedsl import SM_90, cutedsl_template
from tests.unit.codegen.loopnest import at, axes, buffer, group
from tests.unit.codegen.test_reduction_kernels import layer_norm
from tests.unit.matrix.contractions import matmul

F32, F64, BOOL = DType.F32, DType.F64, DType.BOOL
POINTS = 24
CONFIG = {"threads": 128, "vector": 1}


def pointwise(value: Value, *inputs: DType, result: DType | None = None) -> Any:
    """The template of ``y = value`` over 24 points, of which ``x0``, ``x1`` … are read."""
    walked = axes(POINTS)
    buffers = [buffer(f"x{i}", dtype, (POINTS,)) for i, dtype in enumerate(inputs)]
    buffers.append(buffer("y", result or value.dtype, (POINTS,)))
    return cutedsl_template([Pointwise("op0", walked, Store("y", at(walked), value), ())], buffers)


# -- names, comments ------------------------------------------------------------------------------


def test_the_name_is_the_fused_ops_and_the_text() -> None:
    kernel = pointwise(Call("neg", (read(0, F32),), F32), F32).generate(CONFIG).kernel
    assert re.fullmatch(r"cutedsl_fused_add_[0-9a-f]{8}", kernel.name)
    assert is_named_by_code(kernel.name, kernel.source, "#")
    assert kernel.source.startswith(f"# kernel path: {kernel.source_path}\n")
    assert kernel.source_path == f"kernels/{kernel.name}/source.py"
    changed = kernel.source.replace("VECTOR = 1", "VECTOR = 2")
    assert not is_named_by_code(kernel.name, changed, "#")


def test_without_a_named_op_the_name_is_the_text_alone() -> None:
    walked = axes(POINTS)
    members = [Pointwise("op0", walked, Store("y", at(walked), read(0, F32)), ())]
    buffers = [buffer("x0", F32, (POINTS,)), buffer("y", F32, (POINTS,))]
    node, lowered = group(GroupKind.POINTWISE, members, buffers, ops=())
    made = CuteDSLScheduling(Schedule(lowered, (node,), (), {}, {}), SM_90)
    assert re.fullmatch(r"cutedsl_[0-9a-f]{8}", made.default(node).name)


def test_nodes_of_one_text_share_a_kernel() -> None:
    made = pointwise(read(0, F32), F32)
    scheduling = CuteDSLScheduling(Schedule(made.lowered, (made.node,), (), {}, {}), SM_90)
    caller = scheduling.default(made.node)
    kernel, call = scheduling.codegen(made.node, caller)
    assert scheduling.codegen(made.node, caller)[0] is kernel
    assert scheduling.kernels == (kernel,)
    assert call.args == {"in_ptr0": "x0", "out_ptr0": "y"}
    assert caller.output().inputs == ("x0",)
    assert [out.name for out in caller.output().outputs] == ["y"]


def test_a_template_node_is_told_from_loops() -> None:
    made = pointwise(read(0, F32), F32)
    scheduling = CuteDSLScheduling(Schedule(made.lowered, (made.node,), (), {}, {}), SM_90)
    assert not scheduling.is_cutedsl_template(made.node)
    assert not scheduling.is_cutedsl_fused_template(made.node)
    for bias in (None, [64]):
        (product,) = matmul(64, 64, 64, DType.F16, bias=bias).nodes
        assert scheduling.is_cutedsl_template(product)
        assert scheduling.is_cutedsl_fused_template(product) is (bias is not None)


def test_only_nvidias_gpus_are_served() -> None:
    reasons = {name: CuteDSLScheduling.obstacle(find(name)) for name in ("sm_80", "gfx942", "cpu")}
    assert reasons["sm_80"] == ""
    assert reasons["gfx942"] == "CuteDSL is supported only on NVIDIA GPUs, not on gfx942"
    assert reasons["cpu"]


# -- late places ----------------------------------------------------------------------------------


def test_places_are_filled_in_order_from_the_text_so_far() -> None:
    text = PartialRender(
        "<A>, <B>", {"<A>": lambda _: "one", "<B>": lambda code: f"after {code.split(',')[0]}"}
    )
    assert text.finalize_all() == "one, after one"


@pytest.mark.parametrize("code", ["", "<A> <A>"])
def test_a_place_that_is_not_there_once_is_an_error(code: str) -> None:
    with pytest.raises(ValueError, match="<A> occurs"):
        PartialRender(code, {"<A>": lambda _: ""}).finalize_all()


# -- what has no text -----------------------------------------------------------------------------


def test_a_function_that_cutedsl_lacks_is_rejected_by_name() -> None:
    made = pointwise(Call("erfinv", (read(0, F32),), F32), F32)
    reasons = {made.reject(config).reason for config in made.configs()}
    assert reasons == {"erfinv of f32 is not supported by CuteDSL"}


def test_python_computes_nothing_with_constants_while_it_traces() -> None:
    """1 / 0 would be an error of Python's; a conversion of it, and what comes after, too."""
    quotient = Call("truediv", (Const(1.0, F32), Const(0.0, F32)), F32)
    value = Call("add", (Cast(quotient, F64), Const(2.0, F64)), F64)
    assert (cutedsl.run(pointwise(value).generate(CONFIG), {})["y"] == np.inf).all()


def test_a_constant_is_rounded_to_its_type_before_it_is_converted() -> None:
    value = Cast(Cast(Cast(Const(0.1, F32), DType.BF16), F32), F64)
    got = cutedsl.run(pointwise(value).generate(CONFIG), {})["y"]
    assert (got == from_device(to_device(np.array([0.1]), DType.BF16), DType.BF16)).all()


def test_only_functions_that_are_called_stand_beside_a_kernel() -> None:
    source = pointwise(Call("sigmoid", (read(0, F32),), F32), F32).generate(CONFIG).kernel.source
    assert re.findall(r"^def (\w+)", source, re.MULTILINE)[:-2] == [
        "select",
        "load",
        "store",
        "sigmoid",
    ]


def test_a_node_without_a_template_says_so_among_its_candidates() -> None:
    members, buffers = layer_norm(8, 96)
    node, lowered = group(GroupKind.REDUCTION, members, buffers)
    found = scheduling_for(Schedule(lowered, (node,), (), {}, {}), SM_90).candidates(node)
    assert found.callers, "HIP's serve it"
    reasons = {one.template: one.rejected.reason for one in found.rejected}
    assert reasons["CuteDSLScheduling"] == "no template for reduction kernels"


# -- random trees ---------------------------------------------------------------------------------


@pytest.mark.full
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(st.integers(0, 2**32), st.sampled_from(TYPES))
def test_random_trees_give_what_they_mean(seed: int, dtype: DType) -> None:
    made = problem([as_stored(tree(Random(seed), dtype, 5), dtype)], random_memory(seed))
    caller = made.template.generate(CONFIG)
    assert not made.faults(cutedsl.run(caller, made.memory)), caller.kernel.source


HELD = [dtype for dtype in TYPES if dtype.compute_dtype is dtype]


@pytest.mark.parametrize("dtype", HELD, ids=lambda dtype: dtype.label)
def test_every_function_of_every_type_gives_what_numpy_gives(dtype: DType) -> None:
    made = functions_problem(dtype)
    assert not made.faults(cutedsl.run(made.template.generate(CONFIG), made.memory))


@pytest.mark.long
def test_random_trees_compile() -> None:
    """By NVIDIA's own compiler, whose rules are not all said anywhere."""
    made = random_problem(7, 27).template
    toolchain = pick_toolchain(find_target_toolchains(SM_90[0], Search()), SM_90[0], CUTEDSL_SOURCE)
    for vector in (1, 2):
        kernel = made.generate({"threads": 128, "vector": vector}).kernel
        found = build(
            kernel.source, kernel.name, SM_90[0], toolchain, KEPT, source_file=CUTEDSL_SOURCE
        )
        assert isinstance(found, Build), found
