"""HIP sources become PTX, machine code, and a listing that says where each line comes from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from scheduler import targets
from scheduler.build.compile import build
from scheduler.build.cuda.toolchains import NAME, CudaToolchain, cuda_compilers
from scheduler.build.flags import parse_flags
from scheduler.build.model import Build
from scheduler.build.toolchains import Search
from scheduler.errors import Rejected
from scheduler.isa.instructions import Kind
from scheduler.isa.reader import reader_of
from scheduler.targets.generations import NVIDIA_TARGETS
from scheduler.targets.model import hip_hardware
from tests.support.caches import KEPT

# A product of one 16x32 tile by one 8x32, of f16, with a block's shared memory of 64 KiB.
SOURCE = """
#include <kiln/mma.h>
using T = _Float16;
constexpr int kElements = 32768;
extern "C" __global__ void __launch_bounds__(32) go_kernel(const T* a, float* out, int n) {
  KILN_SHARED(T, lds, kElements);
  for (int i = threadIdx.x; i < n; i += 32) lds[i] = a[i];
  __syncthreads();
  kiln::mma::Tile<T, 16, 16> tile(threadIdx.x);
  tile.multiply(lds, lds + 640, 40);
  for (int i = 0; i < tile.kRows; ++i)
    for (int j = 0; j < tile.kColumns; ++j) out[tile.row(i) * 16 + tile.column(j)] = tile.at(i, j);
}
extern "C" PT_EXPORT int go(const T* a, float* out, int n, size_t*, unsigned char*, hipStream_t s) {
  hipLaunchKernelGGL(go_kernel, dim3(1), dim3(32), KILN_SHARED_BYTES(T, kElements), s, a, out, n);
  return hipGetLastError();
}
"""
MULTIPLIED = 1 + next(i for i, line in enumerate(SOURCE.split("\n")) if "multiply(" in line)
LARGE_ENOUGH = [
    target for target in NVIDIA_TARGETS if target.name not in {"sm_86", "sm_89", "sm_120"}
]

Compiled = Callable[..., Build]


def test_flags_for_amds_gpus_are_refused_rather_than_left_out(
    compilers: dict[str, CudaToolchain],
) -> None:
    flags = parse_flags("-O2 -mcumode -ffast-math")
    rejected = build(SOURCE, "go", targets.find("sm_90"), compilers[NAME], KEPT, flags)
    assert isinstance(rejected, Rejected)
    assert rejected.reason == "-mcumode has no effect in HIP for sm_90: remove it"


@pytest.fixture(scope="module")
def compilers() -> dict[str, CudaToolchain]:
    found = cuda_compilers(Search(cache=KEPT))
    return {one.name: one for one in found if isinstance(one, CudaToolchain)}


def compiled(target: str, toolchain: CudaToolchain) -> Build:
    made = build(SOURCE, "go", targets.find(target), toolchain, KEPT)
    assert isinstance(made, Build), made
    return made


@pytest.mark.full
@pytest.mark.parametrize("target", [target.name for target in NVIDIA_TARGETS])
def test_every_target_assembles_and_says_what_it_takes(
    target: str, compilers: dict[str, CudaToolchain]
) -> None:
    made = compiled(target, compilers[NAME])
    (found,) = made.resources.values()
    assert found["shared_bytes"] == 65536
    assert found["threads"] == 32
    assert 0 < found["registers"] <= 255
    room = (targets.find(target).hardware.shared_bytes) // (65536 + 1024)  # type: ignore[attr-defined]
    assert found["occupancy_blocks_per_sm"] == room
    assert found["limiter"] == "shared memory"


def test_the_listing_maps_matrix_instructions_to_the_line_that_asks_for_them(
    compilers: dict[str, CudaToolchain],
) -> None:
    """The instruction stands in a header; whoever reads the kernel looks at the call."""
    directory = compiled("sm_90", compilers[NAME]).directory
    rows = (directory / "kernel.s").read_text().split("\n")
    assert any(row.startswith("  /*0000*/       ") for row in rows), "and not far to the right"
    for file in ("kernel.s", "kernel.ptx"):
        listing = reader_of(targets.find("sm_90")).parse((directory / file).read_text())
        function = listing.function("go_kernel")
        assert function is not None
        matrix = [one for one in function.instructions if one.kind is Kind.MATRIX]
        assert matrix
        assert {one.source_line for one in matrix} == {MULTIPLIED}
        kinds = {one.kind for one in function.instructions}
        assert {Kind.LDS, Kind.GLOBAL, Kind.BRANCH, Kind.WAIT} <= kinds
        assert function.loops, "the loop that fills shared memory"


def test_without_the_assembler_the_library_holds_ptx_for_the_driver(
    compilers: dict[str, CudaToolchain],
) -> None:
    directory = compiled("sm_90", compilers["bundled"]).directory
    assert not (directory / "kernel.cubin").exists()
    ptx = (directory / "kernel.ptx").read_bytes()
    assert (directory / "kernel.s").read_bytes() == ptx
    listing = reader_of(targets.find("sm_90")).parse(ptx.decode())
    function = listing.function("go_kernel")
    assert function is not None
    matrix = [one for one in function.instructions if one.kind is Kind.MATRIX]
    assert {one.source_line for one in matrix} == {MULTIPLIED}
    assert ptx + b"\0" in (directory / "kernel.so").read_bytes()


EXACT = """
#include <kiln/math.h>
#include <kiln/vector.h>
extern "C" __global__ void go_kernel(float* x) { x[threadIdx.x] = kiln::cos(x[threadIdx.x]); }
extern "C" PT_EXPORT int go(float* x, size_t*, unsigned char*, hipStream_t s) {
  hipLaunchKernelGGL(go_kernel, dim3(1), dim3(32), 0, s, x);
  return hipGetLastError();
}
"""


def test_a_remainder_is_exact_whatever_the_quotient(compilers: dict[str, CudaToolchain]) -> None:
    """The compiler's own is x - trunc(x / y) * y for NVIDIA: on an H200 fmod(-3.2e38, 0.2) was
    infinite. Long division in integers has another remainder."""
    source = EXACT.replace("kiln::cos(x[threadIdx.x])", "kiln::fmod(x[threadIdx.x], x[0])")
    made = build(source, "go", targets.find("sm_90"), compilers[NAME], KEPT)
    assert isinstance(made, Build), made
    assert "rem.u64" in (made.directory / "kernel.ptx").read_text()


def test_what_must_be_rounded_by_itself_is(compilers: dict[str, CudaToolchain]) -> None:
    """The parts of a cosine's argument are sums whose rounding errors are computed too: fused with
    a product they would be other ones."""
    made = build(EXACT, "go", targets.find("sm_90"), compilers[NAME], KEPT)
    assert isinstance(made, Build), made
    ptx = (made.directory / "kernel.ptx").read_text()
    assert ("mul.rn.f32" in ptx and "sub.rn.f32" in ptx) or "add.rn.f32" in ptx
    assert "fma.rn.f32" in ptx


def test_a_build_is_the_same_in_any_folder(
    compilers: dict[str, CudaToolchain], tmp_path: Path
) -> None:
    from scheduler.build.cache import CodeCache

    made = compiled("sm_90", compilers[NAME])
    again = build(SOURCE, "go", targets.find("sm_90"), compilers[NAME], CodeCache(tmp_path))
    assert isinstance(again, Build)
    assert again.code_digest == made.code_digest
    for file in ("kernel.s", "kernel.cubin", "kernel.ptx"):
        assert (again.directory / file).read_bytes() == (made.directory / file).read_bytes()


def test_how_the_programs_are_called_is_in_no_record(compilers: dict[str, CudaToolchain]) -> None:
    one = compilers[NAME]
    moved = replace(one, ptxas=("/elsewhere/ptxas",), nvdisasm=("/elsewhere/nvdisasm",))
    assert moved.without_paths() == one.without_paths()
    text = json.dumps(compiled("sm_90", one).to_json())
    assert one.ptxas[0] not in text


@pytest.mark.full
@pytest.mark.parametrize("target", [target.name for target in NVIDIA_TARGETS])
def test_every_matrix_instruction_of_the_table_assembles(
    target: str, compilers: dict[str, CudaToolchain]
) -> None:
    """Those that no template asks for too (tf32), by the name that SASS has for them."""
    rows = hip_hardware(targets.find(target)).matrix_instructions
    kernels = "".join(
        f"""
extern "C" __global__ void k_{row.name}(const kiln::instruction::{row.name}::A* a,
                                        const kiln::instruction::{row.name}::B* b,
                                        kiln::instruction::{row.name}::D* d) {{
  const int lane = threadIdx.x;
  d[lane] = kiln::mma::multiply_add(kiln::instruction::{row.name}{{}}, a[lane], b[lane], d[lane]);
}}
"""
        for row in rows
    )
    source = f"""#include <kiln/mma.h>
{kernels}
extern "C" PT_EXPORT int go() {{ return 0; }}
"""
    made = build(source, "go", targets.find(target), compilers[NAME], KEPT)
    assert isinstance(made, Build), made
    listing = (made.directory / "kernel.s").read_text()
    found = set(re.findall(r"HMMA\.\d+\.F32(?:\.[A-Z]\w+)?", listing))
    assert found == {"HMMA.16816.F32", "HMMA.16816.F32.BF16", "HMMA.1688.F32.TF32"}
