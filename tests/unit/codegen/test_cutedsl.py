"""CuteDSL kernels: their names and comments, what has no text, random trees against NumPy."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from scheduler.codegen.cutedsl.partial_render import PartialRender
from scheduler.codegen.cutedsl.scheduling import CuteDSLScheduling
from scheduler.codegen.names import is_named_by_code
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.operations import GroupKind, Pointwise, Store
from scheduler.ir.pointwise import FUNCTIONS, Domain, Result
from scheduler.ir.values import Call, Cast, Const, Load, Masked, Value
from tests.support import cutedsl
from tests.support.memory import from_device, to_device
from tests.unit.codegen.cutedsl import SM_90, cutedsl_template
from tests.unit.codegen.loopnest import at, axes, buffer, group
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


def read(number: int, dtype: DType) -> Load:
    return Load(f"x{number}", at(axes(POINTS)), dtype)


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
    product = matmul(64, 64, 64, DType.F16, bias=[64])
    has_template = GroupKind.GEMM in scheduling.templates()
    assert scheduling.is_cutedsl_template(product.nodes[0]) is has_template


# -- late places ----------------------------------------------------------------------------------


def test_places_are_filled_in_order_from_the_text_so_far() -> None:
    text = PartialRender(
        "<A>, <B>", {"<A>": lambda _: "one", "<B>": lambda code: f"after {code.split(',')[0]}"}
    )
    assert text.finalize_all() == "one, after one"


@pytest.mark.parametrize("code", ["", "<A> <A>"])
def test_a_place_that_is_not_there_once_is_an_error(code: str) -> None:
    with pytest.raises(ValueError, match="<A> is"):
        PartialRender(code, {"<A>": lambda _: ""}).finalize_all()


# -- what has no text -----------------------------------------------------------------------------


def test_a_function_that_cutedsl_lacks_is_rejected_by_name() -> None:
    made = pointwise(Call("erfinv", (read(0, F32),), F32), F32)
    reasons = {made.reject(config).reason for config in made.configs()}
    assert reasons == {"CuteDSL has no erfinv of f32"}


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


# -- random trees ---------------------------------------------------------------------------------

TYPES = (*(DType.F16, DType.BF16, F32, F64), *(DType.I64, DType.I32, DType.I8, DType.U8), BOOL)
_DIVISIONS = ("floordiv", "truncdiv", "remainder", "fmod")
# Steps, whose place a last digit moves, and what grows beyond its type.
_LEFT_OUT = {"erfinv", "pow", "lshift", "rshift", "exp", "exp2", "sinh", "cosh", "expm1", "tan"}


def tree(rng: Random, dtype: DType, depth: int) -> Value:
    """A random tree of the type that holds ``dtype``."""
    held = dtype.compute
    if depth == 0 or rng.random() < 0.1:
        plain = read(TYPES.index(dtype), dtype)
        return plain if held is dtype else Cast(plain, held)
    choice = rng.random()
    if choice < 0.25:
        return converted(rng, held, depth)
    if choice < 0.35:
        parts = (tree(rng, BOOL, depth - 1), *(tree(rng, held, depth - 1) for _ in range(2)))
        return Masked(*parts)
    return call(rng, held, depth)


def converted(rng: Random, dtype: DType, depth: int) -> Value:
    """From another type, by way of a 16-bit float at times. Floats become no integers: out of
    range, machines differ."""
    source = rng.choice([one for one in TYPES if dtype.is_float or not one.is_float])
    value = tree(rng, source, depth - 1)
    if dtype is F32 and rng.random() < 0.5:
        value = Cast(value, rng.choice([DType.F16, DType.BF16]))
    return Cast(value, dtype)


def call(rng: Random, dtype: DType, depth: int) -> Value:
    function = FUNCTIONS[rng.choice([name for name in FUNCTIONS if fits(name, dtype)])]
    if function.result is Result.BOOL:
        argument = F32 if function.domain is Domain.FLOAT else rng.choice(TYPES).compute
        args = tuple(tree(rng, argument, depth - 1) for _ in range(function.arity))
        return Call(function.name, args, BOOL)
    args = [tree(rng, dtype, depth - 1) for _ in range(function.arity)]
    if function.result is Result.SECOND:
        args[0] = tree(rng, BOOL, depth - 1)
    if function.name in _DIVISIONS:
        args[1] = Const(rng.choice([1, 2, 3, 7]), dtype)
    return Call(function.name, tuple(args), dtype)


def fits(name: str, dtype: DType) -> bool:
    function = FUNCTIONS[name]
    if name in _LEFT_OUT or (name in _DIVISIONS and dtype.is_float):
        return False
    if function.result is Result.BOOL:
        return dtype is BOOL
    return {
        Domain.FLOAT: dtype.is_float,
        Domain.NUMBER: dtype is not BOOL,
        Domain.INTEGER: not dtype.is_float and dtype is not BOOL,
        Domain.BOOL: dtype is BOOL,
        Domain.ANY: True,
    }[function.domain]


def meant(value: Value, memory: dict[str, np.ndarray]) -> np.ndarray:
    """What a tree gives, each step rounded to its own type."""
    if isinstance(value, Const):
        return np.full(POINTS, value.value, value.dtype.wide)
    if isinstance(value, Load):
        return from_device(memory[value.buffer], value.dtype)
    if isinstance(value, Masked):
        parts = (meant(part, memory) for part in (value.condition, value.value, value.other))
        return np.where(*parts)
    args = [
        meant(part, memory) for part in (value.args if isinstance(value, Call) else [value.value])
    ]
    with np.errstate(all="ignore"):
        result = FUNCTIONS[value.op].numpy(*args) if isinstance(value, Call) else args[0]
        if value.dtype is BOOL:
            return np.asarray(result != 0)
        return from_device(to_device(np.asarray(result), value.dtype), value.dtype)


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(st.integers(0, 2**32), st.sampled_from(TYPES))
def test_random_trees_give_what_they_mean(seed: int, dtype: DType) -> None:
    rng = Random(seed)
    value = tree(rng, dtype, 5)
    stored = value if value.dtype is dtype else Cast(value, dtype)
    numbers = np.random.default_rng(seed)
    memory = {
        f"x{i}": to_device(
            numbers.integers(0, 2, POINTS)
            if one is BOOL
            # Quarters: sums and products of a few of them are exact.
            else numbers.integers(-30, 30, POINTS) / (4 if one.is_float else 1),
            one,
        )
        for i, one in enumerate(TYPES)
    }
    caller = pointwise(stored, *TYPES, result=dtype).generate(CONFIG)
    got = from_device(cutedsl.run(caller, memory)["y"], dtype)
    want = meant(stored, memory)
    if not dtype.is_float:
        assert (got == want).all(), caller.kernel.source
        return
    close = np.isclose(got, want, rtol=64 * dtype.eps, atol=64 * dtype.eps, equal_nan=True)
    assert close.all(), (got[~close], want[~close], caller.kernel.source)
