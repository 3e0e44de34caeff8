"""CuteDSL sources run with NumPy: a small ``cutlass``, one thread after another.

It has what kernels of loops use, by the rules of the real one (4.8), those that surprise included:
a pointer's bytes come back signed, ``//`` floors and ``%`` truncates, Python computes with
constants while a kernel is traced. Reads and writes outside a buffer, packs at places that are no
multiple of their width, and threads that wait for each other are errors.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from scipy import special

from scheduler.codegen.caller import TemplateCaller
from scheduler.ir.dtypes import DType
from scheduler.ir.index.functions import evaluate
from tests.support.memory import from_device, to_device


class TracedError(Exception):
    """Python would compute this while the kernel is traced, by its own rules."""


# What Python computes of integers as a kernel does.
_AS_PYTHON = (operator.add, operator.sub, operator.mul, operator.floordiv)


@dataclass(frozen=True)
class Raw:
    """A value without its type, as ``ir_value`` gives it."""

    value: Any


class Numeric:
    """A scalar of a kernel. ``constant``: known while the kernel is traced, and a float of Python
    then, which no conversion rounds."""

    label: ClassVar[str]
    is_float: ClassVar[bool] = False
    width: ClassVar[int]
    signed: ClassVar[bool] = True

    def __init__(self, value: Any) -> None:
        self.constant = not isinstance(value, Raw | Numeric) or getattr(value, "constant", False)
        raw = value.value if isinstance(value, Raw | Numeric) else value
        python = self.constant and self.is_float
        self.value = float(raw) if python else to_held(raw, type(self))

    def ir_value(self) -> Raw:
        return Raw(to_held(self.value, type(self)))

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return int(self.value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value})"

    __hash__ = object.__hash__

    def _operate(self, other: Any, function: Callable[[Any, Any], Any], swap: bool = False) -> Any:
        other = other if isinstance(other, Numeric) else _numeric(other)
        kind = promoted(type(self), type(other))
        if self.constant and other.constant:
            if kind.is_float or function not in _AS_PYTHON or swap:
                raise TracedError(f"{self!r} and {other!r}")
            return kind(int(function(int(self.value), int(other.value))))
        a, b = to_held(self.value, kind), to_held(other.value, kind)
        with np.errstate(all="ignore"):
            result = function(b, a) if swap else function(a, b)
        return kind(Raw(result))

    def _compare(self, other: Any, function: Callable[[Any, Any], Any]) -> Boolean:
        other = other if isinstance(other, Numeric) else _numeric(other)
        if self.constant and other.constant:
            return Boolean(bool(function(self.value, other.value)))
        kind = promoted(type(self), type(other))
        return Boolean(Raw(bool(function(to_held(self.value, kind), to_held(other.value, kind)))))

    def __add__(self, other: Any) -> Any:
        return self._operate(other, operator.add)

    def __radd__(self, other: Any) -> Any:
        return self._operate(other, operator.add, swap=True)

    def __sub__(self, other: Any) -> Any:
        return self._operate(other, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._operate(other, operator.sub, swap=True)

    def __mul__(self, other: Any) -> Any:
        return self._operate(other, operator.mul)

    def __rmul__(self, other: Any) -> Any:
        return self._operate(other, operator.mul, swap=True)

    def __truediv__(self, other: Any) -> Any:
        assert self.is_float, "integers divide to Float32"
        return self._operate(other, operator.truediv)

    def __rtruediv__(self, other: Any) -> Any:
        assert self.is_float, "integers divide to Float32"
        return self._operate(other, operator.truediv, swap=True)

    def __floordiv__(self, other: Any) -> Any:
        assert not self.is_float, "the quotient may have been rounded up"
        return self._operate(other, operator.floordiv)

    def __mod__(self, other: Any) -> Any:
        return self._operate(other, np.fmod)

    def __and__(self, other: Any) -> Any:
        return self._operate(other, operator.and_)

    def __or__(self, other: Any) -> Any:
        return self._operate(other, operator.or_)

    def __xor__(self, other: Any) -> Any:
        return self._operate(other, operator.xor)

    def __lshift__(self, other: Any) -> Any:
        return self._operate(other, operator.lshift)

    def __rshift__(self, other: Any) -> Any:
        return self._operate(other, operator.rshift)

    def __invert__(self) -> Any:
        return type(self)(Raw(np.invert(self.value)))

    def __neg__(self) -> Any:
        assert type(self) is not Boolean
        with np.errstate(all="ignore"):
            return type(self)(-self.value if self.constant else Raw(-self.value))

    def __eq__(self, other: object) -> Any:
        return self._compare(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return self._compare(other, operator.ne)

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._compare(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, operator.ge)


def _type(name: str, label: str, width: int, *, signed: bool = True) -> type[Numeric]:
    is_float = label.startswith(("f", "bf"))
    fields = {"label": label, "width": width, "signed": signed, "is_float": is_float}
    return type(name, (Numeric,), fields)


Boolean = _type("Boolean", "b8", 1)
Int8, Int16 = _type("Int8", "i8", 8), _type("Int16", "i16", 16)
Int32, Int64 = _type("Int32", "i32", 32), _type("Int64", "i64", 64)
Uint8 = _type("Uint8", "u8", 8, signed=False)
Uint16 = _type("Uint16", "u16", 16, signed=False)
Uint32 = _type("Uint32", "u32", 32, signed=False)
Uint64 = _type("Uint64", "u64", 64, signed=False)
Float16, BFloat16 = _type("Float16", "f16", 16), _type("BFloat16", "bf16", 16)
Float32, Float64 = _type("Float32", "f32", 32), _type("Float64", "f64", 64)
TYPES = (
    Boolean,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Float16,
    BFloat16,
    Float32,
    Float64,
)
BY_LABEL = {kind.label: kind for kind in TYPES}


def to_held(value: Any, kind: type[Numeric]) -> Any:
    """A value rounded or wrapped to a type; bf16 stays a float32."""
    dtype = DType.from_label(kind.label)
    with np.errstate(all="ignore"):
        if kind.is_float:
            one = np.asarray([value], dtype=np.float64)
            held = from_device(to_device(one, dtype), dtype)[0]
            return np.dtype(dtype.compute_dtype.numpy).type(held)
        if kind is Boolean:
            return np.bool_(value != 0)
        if isinstance(value, float | np.floating):
            # Out of range a conversion ends at the nearest integer, and NaN is 0.
            limits = np.iinfo(dtype.numpy)
            value = 0 if math.isnan(value) else min(max(value, limits.min), limits.max)
        return np.asarray([int(value) & ((1 << 64) - 1)], np.uint64).astype(dtype.numpy)[0]


def _numeric(value: Any) -> Numeric:
    if isinstance(value, bool):
        return Boolean(value)
    if isinstance(value, int):
        return Int32(value) if -(2**31) <= value < 2**31 else Int64(value)
    assert isinstance(value, float), value
    return Float32(value)


def promoted(a: type[Numeric], b: type[Numeric]) -> type[Numeric]:
    """The type in which two are combined."""
    if a is b:
        return a
    if a.is_float or b.is_float:
        floats = [kind for kind in (a, b) if kind.is_float]
        widest = max(floats, key=lambda kind: kind.width)
        if len(floats) == 1 and max(a.width, b.width) > widest.width:
            return Float64
        return widest
    if a.signed != b.signed:
        unsigned, signed = (b, a) if a.signed else (a, b)
        return unsigned if unsigned.width >= signed.width else signed
    return max((a, b), key=lambda kind: kind.width)


# ---- cute.math -----------------------------------------------------------------------------------


def _function(numpy: Callable[..., Any]) -> Callable[..., Numeric]:
    def function(*args: Numeric) -> Numeric:
        kind = type(args[0])
        assert all(type(arg) is kind and kind.is_float for arg in args)
        with np.errstate(all="ignore"):
            return kind(Raw(numpy(*(np.float64(arg.ir_value().value) for arg in args))))

    return function


MATH = SimpleNamespace(
    **{
        name: _function(getattr(np, numpy))
        for name, numpy in (
            *((name, name) for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p")),
            *((name, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt")),
            *((name, name) for name in ("floor", "ceil", "trunc", "abs", "copysign")),
            *((name, f"arc{name[1:]}") for name in ("asin", "acos", "atan")),
            *((name, f"arc{name[1:]}") for name in ("asinh", "acosh", "atanh")),
            *(("roundeven", "round"), ("pow", "power"), ("atan2", "arctan2")),
        )
    },
    rsqrt=_function(lambda x: 1 / np.sqrt(x)),
    erf=_function(special.erf),
    erfc=_function(special.erfc),
)


# ---- memory --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pointer:
    """A place in a buffer of some elements, in the bits that memory has."""

    memory: np.ndarray
    dtype: type[Numeric]  # signed, whatever the buffer's is
    offset: int = 0

    def __add__(self, offset: Any) -> Pointer:
        return Pointer(self.memory, self.dtype, self.offset + int(offset))


class Tensor:
    """``count`` neighbouring elements."""

    def __init__(self, pointer: Pointer, count: int) -> None:
        self._pointer = pointer
        self._count = count

    def _place(self, index: Any) -> int:
        place = self._pointer.offset + int(index)
        if not 0 <= int(index) < self._count or not 0 <= place < self._pointer.memory.size:
            raise IndexError(f"element {place} of {self._pointer.memory.size}")
        return place

    def __getitem__(self, index: Any) -> Numeric:
        place = self._place(index)
        kind = self._pointer.dtype
        bits = self._pointer.memory[place : place + 1]
        return kind(Raw(from_device(bits, DType.from_label(kind.label))[0]))

    def __setitem__(self, index: Any, element: Numeric) -> None:
        kind = self._pointer.dtype
        assert kind.label.replace("u8", "i8") == type(element).label.replace("u8", "i8")
        value = np.asarray([kind(element.ir_value()).value])
        self._pointer.memory[self._place(index)] = to_device(value, DType.from_label(kind.label))[0]

    def fill(self, value: int) -> None:
        for position in range(self._count):
            self[position] = self._pointer.dtype(Raw(value))

    def recast(self, kind: type[Numeric]) -> Tensor:
        """The same bytes as elements of another type."""
        numpy = DType.from_label(kind.label).numpy
        memory = self._pointer.memory[self._pointer.offset :][: self._count].view(numpy)
        return Tensor(Pointer(memory, kind), memory.size)

    def load(self) -> list[Numeric]:
        return [self[position] for position in range(self._count)]

    def store(self, elements: list[Numeric]) -> None:
        assert len(elements) == self._count
        for position, element in enumerate(elements):
            self[position] = element


def memory_of(array: np.ndarray, label: str) -> Pointer:
    if label in ("b8", "u8"):
        return Pointer(array.view(np.int8), Int8)
    return Pointer(array, BY_LABEL[label])


def _assume(value: Any, divby: int) -> Any:
    if int(value) % divby:
        raise AssertionError(f"{value!r} is no multiple of {divby}")
    return value


# ---- launches ------------------------------------------------------------------------------------


class Kernel:
    """What ``cute.kernel`` makes of a function: each thread runs it by itself."""

    def __init__(self, function: Callable[..., None], state: SimpleNamespace) -> None:
        self._function = function
        self._state = state

    def set_name_prefix(self, prefix: str, **_: bool) -> None:
        assert prefix.isidentifier()

    def __call__(self, *args: Any) -> SimpleNamespace:
        return SimpleNamespace(launch=lambda **how: self._launch(args, **how))

    def _launch(self, args: tuple[Any, ...], grid: Any, block: Any, stream: Any) -> None:
        assert stream is STREAM
        blocks = [int(size) for size in grid]
        assert min(blocks) > 0, "a launch of nothing"
        for number in range(math.prod(blocks)):
            self._state.block = tuple(
                Int32(Raw(part)) for part in np.unravel_index(number, blocks[::-1])[::-1]
            )
            for thread in range(int(block[0])):
                self._state.thread = (Int32(Raw(thread)), Int32(Raw(0)), Int32(Raw(0)))
                self._function(*args)


STREAM = object()


@contextmanager
def modules() -> Iterator[None]:
    """The modules that a source imports, for as long as it is read."""
    state = SimpleNamespace()
    cutlass, cute = ModuleType("cutlass"), ModuleType("cutlass.cute")
    driver = ModuleType("cuda.bindings.driver")
    for kind in TYPES:
        setattr(cutlass, kind.__name__, kind)
    vars(cutlass).update(
        cute=cute,
        range_constexpr=range,
        const_expr=bool,
        select_=lambda condition, a, b: (a if condition.value else b).ir_value(),
        max=lambda a, b: promoted_of(max, a, b),
        min=lambda a, b: promoted_of(min, a, b),
    )
    vars(cute).update(
        Pointer=Pointer,
        math=MATH,
        arch=SimpleNamespace(block_idx=lambda: state.block, thread_idx=lambda: state.thread),
        assume=_assume,
        make_layout=int,
        make_tensor=Tensor,
        make_rmem_tensor=lambda count, dtype: Tensor(
            Pointer(np.zeros(count, DType.from_label(dtype.label).numpy), dtype), count
        ),
        kernel=lambda function: Kernel(function, state),
        jit=lambda function: function,
    )
    driver.CUstream = object
    bindings = ModuleType("cuda.bindings")
    bindings.driver = driver
    own = {
        "cutlass": cutlass,
        "cutlass.cute": cute,
        "cuda": ModuleType("cuda"),
        "cuda.bindings": bindings,
        "cuda.bindings.driver": driver,
    }
    own["cuda"].bindings = bindings
    before = {name: sys.modules.get(name) for name in own}
    sys.modules.update(own)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def promoted_of(function: Callable[..., Any], a: Any, b: Any) -> Numeric:
    a, b = (x if isinstance(x, Numeric) else _numeric(x) for x in (a, b))
    kind = promoted(type(a), type(b))
    return kind(Raw(function(kind(a).value, kind(b).value)))


def has_points(source: Mapping[str, Any], numbers: Mapping[str, int]) -> bool:
    """Whether a call computes anything, by the source's own count: without, nothing is launched."""
    # The build's C; sizes are not negative, so that Python's division is the same.
    return bool(eval(source["POINTS"].replace("/", "//"), {}, dict(numbers)))


def run(
    caller: TemplateCaller,
    memory: Mapping[str, np.ndarray],
    bindings: Mapping[str, int] | None = None,
) -> dict[str, np.ndarray]:
    """Call a CuteDSL kernel on copies of ``memory``; outputs begin as NaN. ``memory`` holds each
    buffer in the type's own bits, from its first element to its last."""
    from tests.unit.codegen.loopnest import extent

    bindings = dict(bindings or {})
    args: list[Any] = []
    outputs: dict[str, np.ndarray] = {}
    numbers: dict[str, int] = {}
    for arg in caller.kernel.args:
        value = caller.call.args[arg.name]
        if not isinstance(value, str):
            numbers[arg.name] = evaluate(value, bindings)
            args.append(BY_LABEL[arg.type](Raw(numbers[arg.name])))
            continue
        dtype = DType.from_label(arg.dtype)
        count = extent(caller.buffers[value], bindings)
        array = np.full(count * dtype.itemsize, 0xFF, np.uint8).view(dtype.numpy)
        if arg.is_output:
            outputs[value] = array
        else:
            array[...] = memory[value]
        args.append(memory_of(array, arg.dtype))
    with modules():
        source: dict[str, Any] = {"__name__": caller.kernel.name}
        exec(compile(caller.kernel.source, caller.kernel.source_file, "exec"), source)
        assert [one[0] for one in source["ARGUMENTS"]] == [one.name for one in caller.kernel.args]
        if has_points(source, numbers):
            source[caller.kernel.name](*args, None, STREAM)
    return outputs
