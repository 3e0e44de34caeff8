"""Every matrix builtin against AMD's published layouts, lane for lane.

The layouts here are written in the other direction than in the emulation: from an element of a
matrix to the lane and the item in it, as the ISA documents give them (CDNA3 ISA 7.1.4 for MFMA;
the tables of RDNA3 ISA 7.9 and RDNA4 ISA 7.12 for WMMA). All values are small integers, so that
the sums are exact in any order and the comparison is for equality.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from scheduler import targets
from scheduler.build.matrix_header import render_struct
from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import to_bits
from scheduler.matrix_instructions import MatrixInstruction
from scheduler.runtime.device import DeviceError
from scheduler.targets.amd import amd_hardware
from tests.unit.test_matrix_instructions import MMA_I8, MMA_M16N8K16, MMA_TF32

Array = np.ndarray[Any, Any]
_VECTOR = "{0} __attribute__((ext_vector_type({1})))".format
_HELD: dict[str, type[np.generic]] = {
    "_Float16": np.float16,
    "float": np.float32,
    "double": np.float64,
    "int8_t": np.int8,
    "int32_t": np.int32,
}
Place = tuple[int, int]  # lane, item


@dataclass(frozen=True)
class Builtin:
    """One row of the table, on one emulated target."""

    row: MatrixInstruction
    target: str

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.row.m, self.row.n, self.row.k

    @property
    def element(self) -> str:
        """The C++ element of the operands, or the label of a float of 8 bits."""
        if self.row.element.startswith("f8"):
            return self.row.element
        return "short" if self.row.bits else DType.from_label(self.row.register_type).cpp

    @property
    def operand(self) -> str:
        """What the builtin takes of a lane."""
        size = {"": self.inputs, "int": self.inputs // 4, "long": self.inputs // 8}[self.row.word]
        each = self.row.word or self.element
        return each if size == 1 else _VECTOR(each, size)

    def call(self, a: str, b: str, c: str) -> str:
        """D, by the builtin."""
        formats = {"fp8": 0, "bf8": 1}
        if self.row.call in formats:
            name, each = "mfma_scale_f32_16x16x128_f8f6f4", formats[self.row.call]
            return f"__builtin_amdgcn_{name}({a}, {b}, {c}, {each}, {each}, 0, 0, 0, 0)"
        if self.row.call == "iu8":
            return f"__builtin_amdgcn_{self.name}(true, {a}, true, {b}, {c}, false)"
        modifiers = ", 0, 0, 0" if "mfma" in self.name else ""
        return f"__builtin_amdgcn_{self.name}({a}, {b}, {c}{modifiers})"

    @property
    def accumulator(self) -> str:
        return DType.from_label(self.row.accumulator).cpp

    @property
    def lanes(self) -> int:
        return 64 if "mfma" in self.name else 32

    @property
    def generation(self) -> int:
        """Of WMMA: 11 or 12."""
        return int(self.target.removeprefix("cpu-gfx")[:-2])

    @property
    def inputs(self) -> int:
        m, _, k = self.shape
        return 16 if self.lanes == 32 and self.generation == 11 else m * k // self.lanes

    @property
    def outputs(self) -> int:
        return self.shape[0] * self.shape[1] // self.lanes

    def input_places(self, i: int, k: int) -> list[Place]:
        """Where A[i][k] lies; B[k][j] lies at the places of (j, k)."""
        if self.lanes == 32:
            if self.generation == 11:
                return [(i, k), (i + 16, k)]
            return [(i + 16 * (k // 8), k % 8)]
        if self.shape[2] == 128:  # of 8 bits: two runs of 16
            return [(i + 16 * (k // 16 % 4), k % 16 + 16 * (k // 64))]
        k_l = self.shape[2] // (64 // self.shape[0])
        return [(i + self.shape[0] * (k // k_l), k % k_l)]

    def output_place(self, i: int, j: int) -> Place:
        if self.lanes == 32:
            if self.generation == 11:
                return (j + 16 * (i % 2), i // 2)
            return (j + 16 * (i // 8), i % 8)
        m, n, _ = self.shape
        h = 1 if self.accumulator == "double" else 4
        b_i = math.ceil(64 / (n * m / h))
        m_i = (64 // b_i) // n
        return (j + n * ((i // h) % m_i), i % h + h * (i // (h * m_i)))


BUILTINS = [
    Builtin(row, name)
    for name in targets.names()
    if name.startswith("cpu")
    for row in amd_hardware(targets.find(name)).matrix_instructions
]


def _kernel(builtin: Builtin) -> str:
    """Each lane reads its operands from row `lane` of the arrays and writes its results there.

    The operands carry a vector type of their own spelling, as a kernel's do.
    """
    return f"""
    typedef {builtin.operand} In_{builtin.name};
    typedef {_VECTOR(builtin.accumulator, builtin.outputs)} Out_{builtin.name};
    __global__ void {builtin.name}(const In_{builtin.name}* a, const In_{builtin.name}* b,
                                   Out_{builtin.name}* c) {{
      int lane = threadIdx.x;
      // Twice, so that the second one meets what the first one left behind.
      auto once = {builtin.call("a[lane]", "b[lane]", "c[lane]")};
      c[lane] = {builtin.call("a[lane]", "b[lane]", "once")};
    }}
    """


def _source(target: str) -> str:
    """All builtins of a target in one library; `which` is the place in `BUILTINS`."""
    here = [(which, one) for which, one in enumerate(BUILTINS) if one.target == target]
    launches = "".join(
        f"""
      if (which == {which})
        hipLaunchKernelGGL({one.name}, dim3(1), dim3(lanes), 0, stream, (In_{one.name}*)a,
                           (In_{one.name}*)b, (Out_{one.name}*)c);
        """
        for which, one in here
    )
    return (
        "".join(_kernel(one) for _, one in here)
        + f"""
    EXPORT go(void* a, void* b, void* c, int which, int lanes, size_t*, uint8_t*,
              hipStream_t stream) {{ {launches} return hipGetLastError(); }}
    """
    )


def multiply(
    builtin: Builtin, run: Callable[..., None], *registers: Array, lanes: int | None = None
) -> None:
    """Run the builtin on the lanes' registers of A, B and C; C is overwritten."""
    which = BUILTINS.index(builtin)
    source, target = _source(builtin.target), builtin.target
    run(source, "go", *registers, which, lanes or builtin.lanes, target=target)


def _encode(values: Array, element: str) -> Array:
    if element in ("short", "__bf16"):
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if element.startswith("f8"):
        return to_bits(values, DType.from_label(element))
    return values.astype(_HELD[element])


def _operands(builtin: Builtin) -> tuple[Array, ...]:
    m, n, k = builtin.shape
    rng = np.random.default_rng(m * 1000 + k)
    return (
        rng.integers(-8, 9, (m, k)).astype(float),
        rng.integers(-8, 9, (k, n)).astype(float),
        rng.integers(-99, 100, (m, n)).astype(float),
    )


def _registers(builtin: Builtin, matrix: Array) -> Array:
    """Rows and k's of a matrix laid out over the lanes."""
    lanes = np.zeros((builtin.lanes, builtin.inputs))
    for (i, k), value in np.ndenumerate(matrix):
        for place in builtin.input_places(i, k):
            lanes[place] = value
    return lanes


def expected_and_found(builtin: Builtin, run: Callable[..., None]) -> tuple[Array, Array]:
    """D = 2 A B + C by NumPy, and as the builtin left it in its lanes."""
    a, b, c = _operands(builtin)
    registers_a = _encode(_registers(builtin, a), builtin.element)
    registers_b = _encode(_registers(builtin, b.T), builtin.element)
    registers_c = np.zeros((builtin.lanes, builtin.outputs))
    for (i, j), value in np.ndenumerate(c):
        registers_c[builtin.output_place(i, j)] = value
    registers_c = _encode(registers_c, builtin.accumulator)
    multiply(builtin, run, registers_a, registers_b, registers_c)
    found = np.zeros_like(c)
    for (i, j), _ in np.ndenumerate(c):
        found[i, j] = registers_c[builtin.output_place(i, j)]
    return 2 * (a @ b) + c, found


@pytest.mark.full
@pytest.mark.parametrize("builtin", BUILTINS, ids=lambda b: f"{b.target}-{b.name}")
def test_every_lane_gets_what_the_hardware_gives_it(
    builtin: Builtin, run: Callable[..., None]
) -> None:
    expected, found = expected_and_found(builtin, run)
    np.testing.assert_array_equal(found, expected)


def test_a_row_alone_is_enough_for_emulation_and_for_a_waves_tile(run: Callable[..., None]) -> None:
    """NVIDIA's mma.m16n8k16, whose operands differ in size and whose columns depend on the value:
    a tile of 2x2 of them, A and B in their lanes by the PTX ISA's formulae."""
    one = MMA_M16N8K16
    source = f"""
    #include <kiln/mma.h>
    namespace kiln::instruction {{
    {render_struct(one)}
    template <>
    struct Select<float, 16> {{  // which nothing else serves on this target
      static constexpr bool kAvailable = true;
      using type = {one.name};
    }};
    }}
    using I = kiln::instruction::{one.name};
    __global__ void k(const I::A* a, const I::B* b, const float* c, float* out) {{
      const int lane = threadIdx.x;
      kiln::mma::Tile<float, 32, 16> tile(lane);
      static_assert(tile.kRows == 4 && tile.kColumns == 4 && tile.kRowLanes == 4);
      for (int i = 0; i < tile.kRows; ++i)
        for (int j = 0; j < tile.kColumns; ++j)
          tile.put(i, j, c[tile.row(i) * 16 + tile.column(j)]);
      for (int i = 0; i < tile.kTilesM; ++i)
        for (int j = 0; j < tile.kTilesN; ++j)
          tile.d[i][j] = kiln_cpu::multiply<I>(a[32 * i + lane], b[32 * j + lane], tile.d[i][j],
                                               __LINE__);
      for (int i = 0; i < tile.kRows; ++i)
        for (int j = 0; j < tile.kColumns; ++j)
          out[tile.row(i) * 16 + tile.column(j)] = tile.at(i, j);
    }}
    EXPORT go(void* a, void* b, void* c, void* out, size_t*, uint8_t*, hipStream_t stream) {{
      hipLaunchKernelGGL(k, dim3(1), dim3(32), 0, stream, (I::A*)a, (I::B*)b, (float*)c,
                         (float*)out);
      return hipGetLastError();
    }}
    """
    rng = np.random.default_rng(16816)
    a, b = rng.integers(-8, 9, (32, 16)), rng.integers(-8, 9, (16, 16))
    c = rng.integers(-99, 100, (32, 16)).astype(np.float32)
    lanes = np.arange(32)[:, None]
    group, thread = lanes // 4, lanes % 4
    i = np.arange(8)
    row, column = group + 8 * (i // 2 % 2), 2 * thread + i % 2 + 8 * (i // 4)
    registers_a = np.concatenate([a[row + 16 * t, column] for t in range(2)]).astype(np.float16)
    i = np.arange(4)
    row = 2 * thread + i % 2 + 8 * (i // 2)
    registers_b = np.concatenate([b[row, group + 8 * t] for t in range(2)]).astype(np.float16)
    out = np.zeros_like(c)
    run(source, "go", registers_a, registers_b, c, out, target="cpu-gfx1100")
    np.testing.assert_array_equal(out, a @ b + c)


def test_integers_are_dealt_out_to_nvidias_lanes_and_wrap_around(run: Callable[..., None]) -> None:
    """A wave's tile by mma.m16n8k32, from memory: two rows of A a lane, four k in a word."""
    one = MMA_I8
    source = f"""
    #include <kiln/mma.h>
    namespace kiln::instruction {{
    {render_struct(one)}
    template <>
    struct Select<int8_t, 16> {{  // which nothing else serves on this target
      static constexpr bool kAvailable = true;
      using type = {one.name};
    }};
    using I = {one.name};
    inline I::D multiply_add(I, I::A a, I::B b, I::D c) {{
      return kiln_cpu::multiply<I>(a, b, c, __LINE__);
    }}
    }}
    __global__ void k(const int8_t* a, const int8_t* b, int32_t* c) {{
      kiln::mma::Tile<int8_t, 32, 16> tile(threadIdx.x);
      for (int i = 0; i < tile.kRows; ++i)
        for (int j = 0; j < tile.kColumns; ++j)
          tile.put(i, j, c[tile.row(i) * 16 + tile.column(j)]);
      for (int k = 0; k < 128; k += tile.kStep) tile.multiply(a + k, b + k, 128);
      for (int i = 0; i < tile.kRows; ++i)
        for (int j = 0; j < tile.kColumns; ++j)
          c[tile.row(i) * 16 + tile.column(j)] = tile.at(i, j);
    }}
    EXPORT go(void* a, void* b, void* c, size_t*, uint8_t*, hipStream_t stream) {{
      hipLaunchKernelGGL(k, dim3(1), dim3(32), 0, stream, (int8_t*)a, (int8_t*)b, (int32_t*)c);
      return hipGetLastError();
    }}
    """
    rng = np.random.default_rng(16832)
    a, b = (rng.integers(-128, 128, (rows, 128)).astype(np.int8) for rows in (32, 16))
    a[3], b[5] = -128, -128
    c = rng.integers(-99, 100, (32, 16)).astype(np.int32)
    c[3, 5] = 2**31 - 1
    expected = (c + a.astype(np.int64) @ b.T).astype(np.int32)
    run(source, "go", a, b, c, target="cpu-gfx1030")
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("name", ["mfma_f32_16x16x8_xf32", "mfma_f32_32x32x4_xf32"])
def test_xf32_takes_10_bits_of_mantissa(name: str, run: Callable[..., None]) -> None:
    """The others are cut off, which is why kernels round before; sums are of f32."""
    builtin = next(one for one in BUILTINS if (one.name, one.target) == (name, "cpu"))
    m, n, k = builtin.shape
    rng = np.random.default_rng(m)
    a, b = (rng.standard_normal(size).astype(np.float32) for size in ((m, k), (k, n)))
    a[0, 0], a[1, 0] = 1 + 2.0**-10 - 2.0**-23, -(1 + 2.0**-10 - 2.0**-23)
    registers_c = np.zeros((builtin.lanes, builtin.outputs), np.float32)
    registers = [_encode(_registers(builtin, each), "float") for each in (a, b.T)]
    multiply(builtin, run, *registers, registers_c)
    found = np.zeros((m, n))
    for (i, j), _ in np.ndenumerate(found):
        found[i, j] = registers_c[builtin.output_place(i, j)]
    cut = [(each.view(np.uint32) & 0xFFFFE000).view(np.float32).astype(float) for each in (a, b)]
    assert cut[0][0, 0] == 1 and cut[0][1, 0] == -1
    np.testing.assert_allclose(found, 2 * cut[0] @ cut[1], rtol=1e-5, atol=1e-5)


def test_tf32_rounds_what_it_multiplies_and_nothing_else(run: Callable[..., None]) -> None:
    """Operands to 10 bits of mantissa, ties away from zero; sums in f32."""
    one = MMA_TF32
    source = f"""
    #include <kiln/mma.h>
    namespace kiln::instruction {{ {render_struct(one)} }}
    using I = kiln::instruction::{one.name};
    __global__ void k(const I::A* a, const I::B* b, I::D* c) {{
      const int lane = threadIdx.x;
      c[lane] = kiln_cpu::multiply<I>(a[lane], b[lane], c[lane], __LINE__);
    }}
    EXPORT go(void* a, void* b, void* c, size_t*, uint8_t*, hipStream_t stream) {{
      hipLaunchKernelGGL(k, dim3(1), dim3(32), 0, stream, (I::A*)a, (I::B*)b, (I::D*)c);
      return hipGetLastError();
    }}
    """
    rng = np.random.default_rng(1688)
    a, b = rng.standard_normal((16, 8)), rng.standard_normal((8, 8))
    a[0], b[:, 0] = 0, 0
    # Halfway between two neighbours, to either side, and just below the middle.
    a[0, :4] = 1 + 2.0**-11, -(1 + 2.0**-11), 1 + 2.0**-11 - 2.0**-23, 1 + 3 * 2.0**-11
    b[:4, 0] = 1, 2.0**-2, 2.0**-4, 2.0**-6
    a, b = a.astype(np.float32), b.astype(np.float32)
    lanes = np.arange(32)[:, None]
    group, thread = lanes // 4, lanes % 4
    i = np.arange(4)
    registers_a = a[group + 8 * (i % 2), thread + 4 * (i // 2)]
    i = np.arange(2)
    registers_b = b[thread + 4 * i, group]
    held = np.zeros((32, 4), np.float32)
    run(source, "go", registers_a, registers_b, held, target="cpu-gfx1100")
    i = np.arange(4)
    out = np.zeros((16, 8))
    out[group + 8 * (i // 2), 2 * thread + i % 2] = held
    rounded_a, rounded_b = _tf32(a), _tf32(b)
    np.testing.assert_allclose(out, rounded_a @ rounded_b, rtol=1e-5, atol=1e-6)
    up, up_twice = 1 + 2.0**-10, 1 + 2 * 2.0**-10
    assert out[0, 0] == up - up / 4 + 1 / 16 + up_twice / 64
    assert np.abs(out - a.astype(float) @ b).max() > 1e-4, "it did round"


def _tf32(values: Array) -> Array:
    """Rounded to 11 significant bits, ties away from zero, by arithmetic alone."""
    mantissa, exponent = np.frexp(values.astype(np.float64))
    whole = np.trunc(np.abs(mantissa) * 2**11 + 0.5)
    return np.ldexp(np.copysign(whole, mantissa), exponent - 11)


def test_a_layout_here_uses_every_register_once() -> None:
    """The oracle itself: no two elements share a place, and none is left over."""
    for builtin in BUILTINS:
        m, n, k = builtin.shape
        inputs = [p for i in range(m) for q in range(k) for p in builtin.input_places(i, q)]
        outputs = [builtin.output_place(i, j) for i in range(m) for j in range(n)]
        assert len(set(inputs)) == len(inputs) == builtin.lanes * builtin.inputs
        assert len(set(outputs)) == len(outputs) == builtin.lanes * builtin.outputs


def test_operands_that_gfx11_wants_repeated_must_be(run: Callable[..., None]) -> None:
    builtin = next(b for b in BUILTINS if b.target == "cpu-gfx1100")
    a, b, _ = _operands(builtin)
    registers_a = _encode(_registers(builtin, a), builtin.element)
    registers_a[17, 3] += 1
    registers_b = _encode(_registers(builtin, b.T), builtin.element)
    out = np.zeros((32, 8), np.float32)
    with pytest.raises(DeviceError, match="do not repeat the operands"):
        multiply(builtin, run, registers_a, registers_b, out)


def test_a_matrix_instruction_needs_a_whole_wave(run: Callable[..., None]) -> None:
    builtin = BUILTINS[0]
    arrays = [np.zeros((64, n), np.float32) for n in (builtin.inputs, builtin.inputs, 4)]
    with pytest.raises(DeviceError, match="incomplete wave"):
        multiply(builtin, run, *arrays, lanes=48)


def test_products_of_half_precision_are_not_rounded_on_the_way(run: Callable[..., None]) -> None:
    """Products and sums are in f32: 2048 + 1 is lost in f16 and must not be here."""
    builtin = next(b for b in BUILTINS if b.name == "mfma_f32_16x16x16f16")
    a = np.ones((16, 16))
    a[:, 0] = 2048
    registers = _encode(_registers(builtin, a), "_Float16")
    ones = _encode(_registers(builtin, np.ones((16, 16))), "_Float16")
    out = np.zeros((64, 4), np.float32)
    multiply(builtin, run, registers, ones, out)
    np.testing.assert_array_equal(out, 2.0 * (2048 + 15))
