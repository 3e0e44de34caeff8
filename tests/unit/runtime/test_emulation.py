"""The CPU emulation: what a kernel may rely on, and what it is told if it errs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from scheduler.runtime.device import DeviceError

Run = Callable[..., None]
Array = np.ndarray[Any, Any]


def kernel(body: str, parameters: str, grid: str, block: str, lds: str = "0") -> str:
    """A kernel `k` of that body, and `go` that launches it with the same arguments."""
    names = ", ".join(p.split()[-1].lstrip("*") for p in parameters.split(","))
    return f"""
    __global__ void k({parameters}) {{ {body} }}
    EXPORT go({parameters}, size_t*, uint8_t*, hipStream_t stream) {{
      hipLaunchKernelGGL(k, dim3({grid}), dim3({block}), {lds}, stream, {names});
      return hipGetLastError();
    }}
    """


# ---- indices, blocks, LDS ----------------------------------------------------------------------


def test_every_thread_of_every_block_runs_once_and_knows_where_it_is(run: Run) -> None:
    body = """
      int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
      int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
      atomicAdd(&out[b * 30 + t], 1 + t + 100 * b);
    """
    out = np.zeros(24 * 30, np.int32)
    run(kernel(body, "int* out", "2, 3, 4", "5, 3, 2"), "go", out)
    expected = 1 + np.arange(30)[None, :] + 100 * np.arange(24)[:, None]
    np.testing.assert_array_equal(out.reshape(24, 30), expected)


@pytest.mark.parametrize("target", ["cpu", "cpu-gfx1100"])
@pytest.mark.parametrize("threads", [1, 31, 64, 100, 1024])
def test_a_barrier_holds_for_the_whole_block(run: Run, target: str, threads: int) -> None:
    """Each thread reads what the one before it wrote in the last round."""
    body = """
      __shared__ int cell[1024];
      int me = threadIdx.x, before = (me + threads - 1) % threads, value = blockIdx.x;
      for (int round = 0; round < 5; ++round) {
        cell[me] = value + me;
        __syncthreads();
        value = cell[before];
        __syncthreads();
      }
      out[blockIdx.x * threads + me] = value;
    """
    out = np.zeros(3 * threads, np.int32)
    source = kernel(body, "int* out, int threads", "3", "threads")
    run(source, "go", out, threads, target=target)
    value = np.arange(3)[:, None] + np.zeros((3, threads), np.int32)
    for _ in range(5):
        value = np.roll(value + np.arange(threads), 1, axis=1)
    np.testing.assert_array_equal(out.reshape(3, threads), value)


def test_waves_that_take_different_ways_meet_at_their_own_barriers(run: Run) -> None:
    """The hardware counts waves at the barrier, wherever in the code each of them stands."""
    body = """
      __shared__ int cell[128];
      cell[threadIdx.x] = 0;
      if (threadIdx.x < 64) {
        cell[threadIdx.x] = 1;
        __syncthreads();
      } else {
        cell[threadIdx.x] = 2;
        __syncthreads();
      }
      out[threadIdx.x] = cell[127 - threadIdx.x];
    """
    out = np.zeros(128, np.int32)
    run(kernel(body, "int* out", "1", "128"), "go", out)
    np.testing.assert_array_equal(out, [2] * 64 + [1] * 64)


def test_dynamic_lds_is_the_blocks_own_and_starts_as_nan(run: Run) -> None:
    body = """
      HIP_DYNAMIC_SHARED(float, cell)
      bool fresh = true;
      for (int i = 0; i < 128; ++i) fresh = fresh && cell[i] != cell[i];
      __syncthreads();
      cell[threadIdx.x] = threadIdx.x + 1000 * blockIdx.x;
      __syncthreads();
      out[blockIdx.x * 128 + threadIdx.x] = fresh ? cell[127 - threadIdx.x] : -1;
    """
    out = np.zeros(8 * 128, np.float32)
    run(kernel(body, "float* out", "8", "128", "128 * sizeof(float)"), "go", out)
    expected = 127 - np.arange(128) + 1000 * np.arange(8)[:, None]
    np.testing.assert_array_equal(out.reshape(8, 128), expected)


def test_arguments_are_converted_to_the_kernels_types_as_by_a_call(run: Run) -> None:
    source = """
    template <int N, typename T>
    __global__ void k(T* out, int64_t wide, float narrow) { out[0] = wide; out[1] = narrow + N; }
    EXPORT go(int64_t* out, int n, size_t*, uint8_t*, hipStream_t stream) {
      hipLaunchKernelGGL((k<7, int64_t>), dim3(1), dim3(1), 0, stream, out, n, n);
      return hipGetLastError();
    }
    """
    out = np.zeros(2, np.int64)
    run(source, "go", out, -5)
    np.testing.assert_array_equal(out, [-5, 2])


# ---- across lanes ------------------------------------------------------------------------------


def _shuffle(kind: str, lane: int, operand: int, width: int) -> int:
    """HIP's definition: outside of its segment a lane gets its own value."""
    start = lane & ~(width - 1)
    if kind == "__shfl":
        return start + (operand & (width - 1))
    source = {
        "__shfl_xor": lane ^ operand,
        "__shfl_up": lane - operand,
        "__shfl_down": lane + operand,
    }[kind]
    # The lowest segment that an xor reaches is allowed to lie below.
    low = 0 if kind == "__shfl_xor" else start
    return source if low <= source < start + width else lane


@pytest.mark.full(but=["__shfl-cpu"])
@pytest.mark.parametrize("target", ["cpu", "cpu-gfx1100"])
@pytest.mark.parametrize("kind", ["__shfl", "__shfl_xor", "__shfl_up", "__shfl_down"])
def test_shuffles_do_as_documented_in_and_out_of_range(run: Run, kind: str, target: str) -> None:
    wave = 64 if target == "cpu" else 32
    operands = [0, 1, 3, 15, 16, 31, 40]
    widths = [w for w in (2, 16, 32, 64) if w <= wave]
    calls = "".join(
        f"out[{n} * 128 + threadIdx.x] = {kind}(in[threadIdx.x], {operand}, {width});"
        for n, (operand, width) in enumerate((o, w) for o in operands for w in widths)
    )
    values = np.arange(128, dtype=np.float64) * 1.5
    out = np.zeros((len(operands) * len(widths), 128))
    run(
        kernel(calls, "const double* in, double* out", "1", "128"), "go", values, out, target=target
    )
    for row, (operand, width) in zip(out, ((o, w) for o in operands for w in widths), strict=True):
        expected = [
            values[t - t % wave + _shuffle(kind, t % wave, operand, width)] for t in range(128)
        ]
        np.testing.assert_array_equal(row, expected, err_msg=f"{operand}, width {width}")


def test_votes_and_lane_instructions(run: Run) -> None:
    body = """
      int t = threadIdx.x;
      out[0 * 64 + t] = __ballot(in[t] > 10);
      out[1 * 64 + t] = __any(in[t] == 63) + 2 * __all(in[t] < 63) + 4 * __all(in[t] < 64);
      out[2 * 64 + t] = __builtin_amdgcn_readfirstlane(in[t] + 5);
      out[3 * 64 + t] = __builtin_amdgcn_readlane(in[t], 17);
      out[4 * 64 + t] = __builtin_amdgcn_ds_bpermute((t * 5 + 64) << 2, in[t]);
      out[5 * 64 + t] = __builtin_amdgcn_ds_permute((63 - t) << 2, in[t]);
      out[6 * 64 + t] = __builtin_amdgcn_mov_dpp(in[t], 0x111, 0xf, 0xf, true);   // row_shr:1
      out[7 * 64 + t] = __builtin_amdgcn_update_dpp(-1, in[t], 0x142, 0xa, 0xf, false);
      out[8 * 64 + t] = __builtin_amdgcn_mov_dpp(in[t], 0x1b, 0xf, 0xf, true);    // quad reversed
      out[9 * 64 + t] = __builtin_amdgcn_ds_swizzle(in[t], 0x041f);               // xor 1
      out[10 * 64 + t] = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
      out[11 * 64 + t] = __builtin_amdgcn_mov_dpp(in[t], 0x128, 0xf, 0xf, true);  // row_ror:8
    """
    lanes = np.arange(64)
    out = np.zeros((12, 64), np.int64)
    source = kernel(body, "const int* in, int64_t* out", "1", "64")
    run(source, "go", lanes.astype(np.int32), out)
    row_start = lanes // 16 * 16
    bits = sum(1 << int(lane) for lane in lanes if lane > 10)
    np.testing.assert_array_equal(out[0].view(np.uint64), np.full(64, bits, np.uint64))
    np.testing.assert_array_equal(out[1], 1 + 4)
    np.testing.assert_array_equal(out[2], 5)
    np.testing.assert_array_equal(out[3], 17)
    np.testing.assert_array_equal(out[4], lanes * 5 % 64)
    np.testing.assert_array_equal(out[5], 63 - lanes)
    np.testing.assert_array_equal(out[6], np.where(lanes % 16 > 0, lanes - 1, 0))
    # row_bcast:15 with rows 1 and 3 enabled: lane 15 of the row before; the others keep `old`.
    np.testing.assert_array_equal(out[7], np.where(lanes // 16 % 2 == 1, row_start - 1, -1))
    np.testing.assert_array_equal(out[8], lanes // 4 * 4 + 3 - lanes % 4)
    np.testing.assert_array_equal(out[9], lanes ^ 1)
    np.testing.assert_array_equal(out[10], lanes)
    np.testing.assert_array_equal(out[11], row_start + (lanes + 8) % 16)


def test_a_lane_that_the_block_does_not_have_gives_zero(run: Run) -> None:
    body = "out[threadIdx.x] = __builtin_amdgcn_ds_bpermute((threadIdx.x + 20) << 2, 7);"
    out = np.zeros(50, np.int32)
    run(kernel(body, "int* out", "1", "50"), "go", out)
    np.testing.assert_array_equal(out, [7] * 30 + [0] * 14 + [7] * 6)


def test_shuffles_one_after_the_other_do_not_mix(run: Run) -> None:
    """A reduction by shuffles over several waves, between barriers, again and again."""
    body = """
      __shared__ float part[4];
      for (int round = 0; round < 10; ++round) {
        float value = in[round * 256 + threadIdx.x];
        for (int d = 32; d > 0; d /= 2) value += __shfl_xor(value, d);
        if (threadIdx.x % 64 == 0) part[threadIdx.x / 64] = value;
        __syncthreads();
        if (threadIdx.x == 0) out[round] = part[0] + part[1] + part[2] + part[3];
        __syncthreads();
      }
    """
    values = np.random.default_rng(1).integers(0, 100, 2560).astype(np.float32)
    out = np.zeros(10, np.float32)
    run(kernel(body, "const float* in, float* out", "1", "256"), "go", values, out)
    np.testing.assert_array_equal(out, values.reshape(10, 256).sum(1))


# ---- atomics and the number of host threads ----------------------------------------------------


def test_atomics_lose_nothing_between_host_threads(run: Run) -> None:
    """Blocks enough that the host threads are all at work at the same time."""
    body = """
      atomicAdd(&out[0], 1);
      atomicMax(&out[1], int(blockIdx.x * 64 + threadIdx.x));
      atomicMin(&out[2], -int(blockIdx.x));
      for (int old = out[3];;) {
        int seen = atomicCAS(&out[3], old, old + 2);
        if (seen == old) break;
        old = seen;
      }
      if (threadIdx.x == 0 && blockIdx.x == 0) out[5] = atomicExch(&out[4], 9);
    """
    out = np.zeros(6, np.int32)
    run(kernel(body, "int* out", "10000", "64"), "go", out, threads=4)
    np.testing.assert_array_equal(out, [640000, 639999, -9999, 1280000, 9, 0])


def test_results_do_not_depend_on_the_number_of_host_threads(run: Run) -> None:
    """Not even sums of floating point in memory, whose order decides their last bits."""
    body = """
      __shared__ float cell[64];
      cell[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
      __syncthreads();
      atomicAdd(&out[threadIdx.x % 4], cell[63 - threadIdx.x]);
    """
    values = np.random.default_rng(2).standard_normal(64 * 5000).astype(np.float32)
    results = []
    for threads in (1, 2, 7):
        out = np.zeros(4, np.float32)
        source = kernel(body, "const float* in, float* out", "5000", "64")
        run(source, "go", values, out, threads=threads)
        results.append(out.tobytes())
    assert len(set(results)) == 1


# ---- what is wrong is said, not waited for -----------------------------------------------------


DIVERGENT = [
    (
        "if (threadIdx.x != 70) __syncthreads(); out[0] = 1;",
        r"k0: block \(0, 0, 0\), thread \(70, 0, 0\): a thread ended while others of its wave",
    ),
    ("if (threadIdx.x < 64) __syncthreads();", "ended while others wait at a barrier"),
    ("if (threadIdx.x >= 64) __syncthreads();", "waits at a barrier, but another has ended"),
    ("if (threadIdx.x % 2) out[threadIdx.x] = __shfl(1, 0);", "waits for others of its wave"),
    (
        "if (threadIdx.x % 64 == 63) return; out[threadIdx.x] = __shfl_xor(1, 1);",
        "ended while others of its wave wait",
    ),
    (
        "if (threadIdx.x % 2) __syncthreads(); else out[0] = __shfl(1, 0);",
        "wait at different places",
    ),
    (
        """if (threadIdx.x % 64 < 32) {
             __syncthreads();
           } else {
             out[0] = 1;
             __syncthreads();
           }""",
        "wait at different places",
    ),
]


@pytest.mark.parametrize("which", range(len(DIVERGENT)))
def test_divergence_is_an_error_with_its_place(run: Run, which: int) -> None:
    kernels = "".join(
        f"__global__ void k{n}(int* out) {{ {body} }}\n" for n, (body, _) in enumerate(DIVERGENT)
    )
    launches = "".join(
        f"if (which == {n}) hipLaunchKernelGGL(k{n}, dim3(1), dim3(128), 0, stream, out);\n"
        for n in range(len(DIVERGENT))
    )
    source = f"""{kernels}
    EXPORT go(int* out, int which, size_t*, uint8_t*, hipStream_t stream) {{
      {launches} return hipGetLastError();
    }}
    """
    with pytest.raises(DeviceError, match=DIVERGENT[which][1]) as caught:
        run(source, "go", np.zeros(128, np.int32), which)
    assert caught.value.status == "hipErrorLaunchFailure"


def test_an_error_names_the_line_of_the_kernel(run: Run) -> None:
    source = kernel("\n\nif (threadIdx.x == 0) __syncthreads();", "int* out", "1", "64")
    lines = (  # as the compiler counts them: after the includes that every source here begins with
        next(n for n, line in enumerate(source.split("\n"), 5) if "__syncthreads" in line)
    )
    with pytest.raises(DeviceError, match=rf"\(line {lines}\)"):
        run(source, "go", np.zeros(1, np.int32))


def test_a_failed_launch_leaves_the_next_one_alone(run: Run) -> None:
    source = """
    __global__ void k(int* out, int bad) {
      if (bad && threadIdx.x == 3) return;
      __syncthreads();
      out[blockIdx.x * 64 + threadIdx.x] += 1;
    }
    EXPORT go(int* out, int bad, size_t*, uint8_t*, hipStream_t stream) {
      hipLaunchKernelGGL(k, dim3(50), dim3(64), 0, stream, out, bad);
      return hipGetLastError();
    }
    """
    out = np.zeros(50 * 64, np.int32)
    for _ in range(3):
        with pytest.raises(DeviceError):
            run(source, "go", np.zeros(50 * 64, np.int32), 1)
        run(source, "go", out, 0)
    np.testing.assert_array_equal(out, 3)


def test_an_error_is_raised_even_if_the_host_function_does_not_look(run: Run) -> None:
    source = kernel("if (threadIdx.x) __syncthreads();", "int* out", "1", "64")
    with pytest.raises(DeviceError, match="wait"):
        run(source.replace("return hipGetLastError()", "return 0"), "go", np.zeros(1, np.int32))


@pytest.mark.parametrize(
    ("grid", "block", "lds", "status"),
    [
        (1, 1025, 0, "hipErrorInvalidConfiguration"),
        (0, 64, 0, "hipErrorInvalidConfiguration"),
        (1, 0, 0, "hipErrorInvalidConfiguration"),
        (1, 64, 163841, "hipErrorInvalidValue"),
    ],
)
def test_launches_that_no_gpu_takes_are_rejected(
    run: Run, grid: int, block: int, lds: int, status: str
) -> None:
    parameters = "int* out, int grid, int block, int lds"
    source = kernel("out[0] = 1;", parameters, "grid", "block", "lds")
    out = np.zeros(1, np.int32)
    run(source, "go", out, 1, 64, 0)
    assert out[0] == 1
    with pytest.raises(DeviceError) as caught:
        run(source, "go", np.zeros(1, np.int32), grid, block, lds)
    assert caught.value.status == status


# ---- 16-bit floating point ---------------------------------------------------------------------


def test_conversions_round_to_nearest_even(run: Run) -> None:
    """f16 against NumPy's; bf16 against a rounding in integers, over all kinds of values."""
    body = """
      int i = blockIdx.x * 256 + threadIdx.x;
      half[i] = (_Float16)in[i];
      bfloat[i] = (__bf16)in[i];
      back[i] = (float)half[i];
      wide[i] = (__bf16)(double)in[i];
    """
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**32, 256 * 200, dtype=np.uint64).astype(np.uint32)
    bits[:8] = [0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF, 0x3F808000, 0x3F818000]
    bits[8:5000] = rng.integers(0x37000000, 0x48000000, 4992).astype(np.uint32)  # f16's range
    values = bits.view(np.float32)
    half, back = np.zeros(len(bits), np.float16), np.zeros(len(bits), np.float32)
    bfloat, wide = np.zeros(len(bits), np.uint16), np.zeros(len(bits), np.uint16)
    parameters = "const float* in, _Float16* half, __bf16* bfloat, float* back, __bf16* wide"
    run(kernel(body, parameters, "200", "256"), "go", values, half, bfloat, back, wide)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(half, values.astype(np.float16))
    np.testing.assert_array_equal(back, half.astype(np.float32))
    nan = np.isnan(values)
    exact = bits.astype(np.uint64)
    rounded = ((exact + 0x7FFF + ((exact >> 16) & 1)) >> 16).astype(np.uint16)
    np.testing.assert_array_equal(bfloat[~nan], rounded[~nan])
    np.testing.assert_array_equal(wide[~nan], rounded[~nan])
    assert np.isnan((bfloat[nan].astype(np.uint32) << 16).view(np.float32)).all()


def test_double_to_bf16_is_not_rounded_twice(run: Run) -> None:
    """Just above a tie of bf16 by less than float can hold: up, though the tie goes down."""
    values = np.array([1 + 2**-8 + 2**-40, 1 + 2**-8, 1 + 2**-8 - 2**-40, 1 + 3 * 2**-8])
    out = np.zeros(4, np.uint16)
    body = "out[threadIdx.x] = (__bf16)in[threadIdx.x];"
    run(kernel(body, "const double* in, __bf16* out", "1", "4"), "go", values, out)
    np.testing.assert_array_equal(out, [0x3F81, 0x3F80, 0x3F80, 0x3F82])


def test_half_arithmetic_is_rounded_at_every_step(run: Run) -> None:
    """2048 + 1 is 2048 in f16, so that adding 1 twice more leaves it there."""
    body = "out[threadIdx.x] = in[0] + in[1] + in[1] + in[1];"
    out = np.zeros(1, np.float16)
    source = kernel(body, "const _Float16* in, _Float16* out", "1", "1")
    run(source, "go", np.array([2048, 1], np.float16), out)
    assert out[0] == 2048
