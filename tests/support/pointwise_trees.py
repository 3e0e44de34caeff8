"""Random trees of values over a few points of every type, and what they give by NumPy, each step
rounded to its own type; and every function on values that are awkward."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

from scheduler.codegen.cutedsl.functions import expression_form
from scheduler.codegen.template import KernelTemplate
from scheduler.ir.dtypes import DType
from scheduler.ir.operations import Pointwise, Store
from scheduler.ir.pointwise import FUNCTIONS, Domain, Result
from scheduler.ir.values import Call, Cast, Const, Load, Masked, Value, walk
from tests.support.memory import from_device, to_device
from tests.unit.codegen.cutedsl import cutedsl_template
from tests.unit.codegen.loopnest import at, axes, buffer

F32, F64, BOOL = DType.F32, DType.F64, DType.BOOL
POINTS = 24
Memory = dict[str, np.ndarray]


def read(number: int, dtype: DType) -> Load:
    return Load(f"x{number}", at(axes(POINTS)), dtype)


TYPES = (*(DType.F16, DType.BF16, F32, F64), *(DType.I64, DType.I32, DType.I8, DType.U8), BOOL)
_DIVISIONS = ("floordiv", "truncdiv", "remainder", "fmod")
# What takes the sign of NaN, which machines choose, and what grows beyond its type.
_LEFT_OUT = {
    "erfinv",
    "copysign",
    "pow",
    "lshift",
    "rshift",
    "exp",
    "exp2",
    "sinh",
    "cosh",
    "expm1",
    "tan",
}


def tree(rng: Random, dtype: DType, depth: int) -> Value:
    """A random tree of the type that holds ``dtype``."""
    held = dtype.compute_dtype
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
        argument = F32 if function.domain is Domain.FLOAT else rng.choice(TYPES).compute_dtype
        args = tuple(tree(rng, argument, depth - 1) for _ in range(function.arity))
        return Call(function.name, args, BOOL)
    args = [tree(rng, dtype, depth - 1) for _ in range(function.arity)]
    if function.result is Result.SECOND:
        args[0] = tree(rng, BOOL, depth - 1)
    if function.name in _DIVISIONS:
        args[1] = Const(rng.choice([1, 2, 3, 7]), dtype)
    return Call(function.name, tuple(args), dtype)


def has_text(name: str, dtype: DType) -> bool:
    """Whether CuteDSL has the function: a candidate with another is refused by its name."""
    arguments = (Const(0, dtype),) * FUNCTIONS[name].arity
    return expression_form(Call(name, arguments, dtype)) is not None


def fits(name: str, dtype: DType) -> bool:
    function = FUNCTIONS[name]
    if name in _LEFT_OUT or (name in _DIVISIONS and dtype.is_float):
        return False
    if not has_text(name, dtype):
        return False
    if function.result is Result.BOOL:
        return dtype is BOOL
    if function.result is Result.BITS or not function.takes(dtype):
        return False
    return function.result_type(dtype) is dtype


def meant(value: Value, memory: Memory) -> np.ndarray:
    """What a tree gives, each step rounded to its own type."""
    if isinstance(value, Const):
        return np.full(POINTS, value.value, value.dtype.reference_numpy)
    if isinstance(value, Load):
        read = from_device(memory[value.buffer], value.dtype)
        return read if value.index[0].is_Symbol else read[::-1]
    if isinstance(value, Masked):
        parts = (meant(part, memory) for part in (value.condition, value.value, value.other))
        return np.where(*parts)
    args = [
        meant(part, memory) for part in (value.args if isinstance(value, Call) else [value.value])
    ]
    with np.errstate(all="ignore"):
        result = FUNCTIONS[value.op].numpy(*args) if isinstance(value, Call) else args[0]
        if isinstance(value, Call) and value.op == "truncdiv" and value.dtype.is_float:
            result = np.trunc(from_device(to_device(args[0] / args[1], value.dtype), value.dtype))
        if value.dtype is BOOL:
            return np.asarray(result != 0)
        return from_device(to_device(np.asarray(result), value.dtype), value.dtype)


def random_memory(seed: int) -> Memory:
    """A buffer of each type: halves of floats and small integers, so that sums and products of a
    few of them are exact."""
    numbers = np.random.default_rng(seed)
    return {
        f"x{i}": to_device(
            numbers.integers(0, 2, POINTS)
            if dtype is BOOL
            else numbers.integers(-30, 30, POINTS) / (4 if dtype.is_float else 1),
            dtype,
        )
        for i, dtype in enumerate(TYPES)
    }


def as_stored(value: Value, dtype: DType) -> Value:
    return value if value.dtype is dtype else Cast(value, dtype)


@dataclass(frozen=True)
class Problem:
    """A kernel, what it reads, and the tree of each buffer that it writes."""

    template: KernelTemplate
    memory: Memory
    trees: dict[str, Value]

    def faults(self, found: Memory) -> list[str]:
        """The outputs that are not what their trees mean."""
        return [
            f"{name}: {found[name]} for {tree}"
            for name, tree in self.trees.items()
            if not agrees(found[name], tree, self.memory)
        ]


def agrees(got: np.ndarray, tree: Value, memory: Memory) -> bool:
    dtype, want = tree.dtype, meant(tree, memory)
    if not dtype.is_float:
        return bool((got == want).all())
    # Of the coarsest type that a step rounds to: float64 of a float32 has no more digits.
    steps = [part for part in walk(tree) if isinstance(part, (Call, Cast))]
    eps = 64 * max((part.dtype.eps for part in steps), default=dtype.eps)
    return np.allclose(from_device(got, dtype), want, rtol=eps, atol=eps, equal_nan=True)


def problem(trees: list[Value], memory: Memory) -> Problem:
    """One kernel of several trees over the same points."""
    walked = axes(POINTS)
    buffers = [buffer(f"x{i}", dtype, (POINTS,)) for i, dtype in enumerate(TYPES)]
    buffers += [buffer(f"y{i}", tree.dtype, (POINTS,)) for i, tree in enumerate(trees)]
    members = [
        Pointwise(f"op{i}", walked, Store(f"y{i}", at(walked), tree), ())
        for i, tree in enumerate(trees)
    ]
    named = {f"y{i}": tree for i, tree in enumerate(trees)}
    return Problem(cutedsl_template(members, buffers), memory, named)


def random_problem(seed: int, count: int, depth: int = 4) -> Problem:
    """Random trees, those of a kind at least once in some of them."""
    rng = Random(seed)
    trees = []
    for number in range(count):
        dtype = TYPES[number % len(TYPES)]
        trees.append(as_stored(tree(rng, dtype, depth), dtype))
    return problem(trees, random_memory(seed))


def functions_problem(dtype: DType) -> Problem:
    """Every function that takes the type, on values from where it is awkward."""
    memory = random_memory(0)
    names = [name for name in FUNCTIONS if takes(name, dtype) and has_text(name, dtype)]
    place = TYPES.index(dtype)
    if dtype.is_float:
        memory[f"x{place}"] = np.resize([*AWKWARD, 0.9, -0.3, 12.0], POINTS).astype(dtype.numpy)
    elif dtype is not BOOL:
        memory[f"x{place}"] = np.resize([-7, -3, -2, -1, 1, 2, 3, 5, 11], POINTS).astype(
            dtype.numpy
        )
    own = read(place, dtype)
    # The second argument is the first of another point, so that each meets others.
    turned = Load(f"x{place}", (POINTS - 1 - at(axes(POINTS))[0],), dtype)
    trees: list[Value] = []
    args: list[Value]
    for name in names:
        function = FUNCTIONS[name]
        args = [own, second_argument(name, turned)][: function.arity]
        if function.result is Result.SECOND:
            args = [Call("lt", (own, turned), BOOL), own, turned]
        result = BOOL if function.result is Result.BOOL else dtype
        trees.append(Call(name, tuple(args), result))
    return problem(trees, memory)


def second_argument(name: str, value: Value) -> Value:
    """``value``, or what of it a function takes: shifts and powers small numbers, divisions of
    floats what is not 0, where NumPy and C differ."""
    dtype = value.dtype
    if name in ("lshift", "rshift", "pow"):
        return Call("bitwise_and", (value, Const(7, dtype)), dtype)
    if name in _DIVISIONS and dtype.is_float:
        return Call("add", (Call("abs", (value,), dtype), Const(0.75, dtype)), dtype)
    return value


WHOLE = [-7, -3, -2, -1, 1, 2, 3, 5, 11]
AWKWARD = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 1e-3, 40.0, -40.0]


def takes(name: str, dtype: DType) -> bool:
    """Whether a function's arguments may be of the type; powers are those of integers."""
    if name == "pow" and dtype.is_float:
        return False
    function = FUNCTIONS[name]
    if function.result in (Result.BITS, Result.COMPLEX):
        return False
    return function.takes(dtype)
