"""Highlighting keeps every line and every character, and knows what the compiler really writes."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.token import Error

from codegen_app.web.highlighting import (
    AmdListingLexer,
    HipLexer,
    PtxLexer,
    SassLexer,
    highlight_lines,
    listing_lexer,
    source_lexer,
)
from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build, Toolchain
from scheduler.isa.reader import reader_of
from scheduler.targets import generations
from scheduler.targets.amd import amd_hardware

SOURCE = """#include <hip/hip_runtime.h>
typedef float f4 __attribute__((ext_vector_type(4)));
typedef _Float16 h4 __attribute__((ext_vector_type(4)));

__global__ __launch_bounds__(256) void device(const _Float16* a, float* c, const double* d, int k) {
  __shared__ _Float16 tile[2][1024];
  f4 acc = {0, 0, 0, 0};
  for (int i = 0; i < k; i += 4) {
    tile[(i >> 2) & 1][threadIdx.x * 4] = a[threadIdx.x * k + i] + (_Float16)1.5;
    __syncthreads();
    h4 x = *(h4*)&tile[(i >> 2) & 1][((threadIdx.x * 7) & 255) * 4];
#if defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
    acc = __builtin_amdgcn_mfma_f32_16x16x16f16(x, x, acc, 0, 0, 0);
#else
    acc += (f4){(float)x[0], (float)x[1], (float)x[2], (float)x[3]};
#endif
    if (acc[0] > 1e6f) break;
  }
  float v = acc[0] + acc[1];
  v += __builtin_amdgcn_update_dpp(0, (int)v, 0x111, 0xf, 0xf, true);
  c[threadIdx.x] = __builtin_expf(v) / (v + 0.1f) + __builtin_sqrtf(v);
  float r[300];
  for (int i = 0; i < 300; ++i) r[i] = c[i * k];
  for (int j = 0; j < k; ++j)
    for (int i = 0; i < 300; ++i) r[i] = r[i] * r[(i * 7 + j) % 300] + (float)d[j];
  for (int i = 0; i < 300; ++i) c[i] = r[i];
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
}

extern "C" __attribute__((visibility("default"))) int k(const _Float16* a, float* c, double* d) {
  hipLaunchKernelGGL(device, dim3(1), dim3(256), 0, nullptr, a, c, d, 4);
  return 0;
}
"""
GPUS = [target.name for target in generations.AMD_TARGETS]


@pytest.mark.full(but=["gfx90a"])
@pytest.mark.parametrize("target", GPUS)
def test_real_listings_have_no_error_tokens(
    target: str, cache: CodeCache, toolchain: Toolchain
) -> None:
    built = build(SOURCE, "k", targets.find(target), toolchain, cache)
    assert isinstance(built, Build), built
    text = (built.directory / "kernel.s").read_text()
    lexer = AmdListingLexer()
    errors = [value for token, value in lexer.get_tokens(text) if token in Error]
    assert errors == []
    matrix = [line for line in highlight_lines(text, lexer) if "i-matrix" in line]
    assert bool(matrix) == (amd_hardware(targets.find(target)).matrix == "mfma")


def text_of(line: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", line))


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=300))
def test_any_text_keeps_its_lines_and_characters(text: str) -> None:
    """Also one that is no program at all: an upload's name may stand in a comment."""
    for lexer in (HipLexer(), AmdListingLexer(), SassLexer(), PtxLexer()):
        assert [text_of(line) for line in highlight_lines(text, lexer)] == text.split("\n")


@given(st.lists(st.sampled_from(["<", ">", "&", '"', "%a", "a", " ", "// ", "\n"]), max_size=40))
def test_nothing_of_a_source_becomes_markup(parts: list[str]) -> None:
    lines = highlight_lines("".join(parts), HipLexer(), {"a": '/x?"><script>'})
    for line in lines:
        without = re.sub(
            r'<span class="[\w -]*">|</span>|<a tabindex="-1" href="[^"<>]*">|</a>', "", line
        )
        assert "<" not in without
        assert ">" not in without


def test_the_metadata_comment_is_live_and_code_is_not() -> None:
    source = "//   %addmm : Tensor = call_function[target=addmm](args = (%x,))\nint addmm = 1;"
    first, second = highlight_lines(source, HipLexer(), {"addmm": "/graphs/1?node=addmm"})
    assert first.count('<a tabindex="-1" href="/graphs/1?node=addmm">addmm</a>') == 2
    assert "<a" not in second


def test_dual_instructions_are_both_coloured() -> None:
    line = "\tv_dual_mov_b32 v5, 0 :: v_dual_lshlrev_b32 v6, 3, v0"
    assert highlight_lines(line, AmdListingLexer())[0].count("i-vector") == 2


def test_every_class_that_the_lexers_give_has_a_colour() -> None:
    sheet = Path(__file__).resolve().parents[3].joinpath("static/css/kernels/code.css").read_text()
    used = set()
    for lexer in (HipLexer(), AmdListingLexer(), SassLexer(), PtxLexer()):
        for line in highlight_lines(SOURCE, lexer):
            used |= set(re.findall(r'<span class="([\w-]+)">', line))
    plain = {"n", "p", "o", "w", "na", "no"}
    missing = {css for css in used - plain if not re.search(rf"\.{css}\b", sheet)}
    assert missing == set()


@pytest.mark.parametrize(
    ("file", "name"),
    [("source.hip", "HIP"), ("source.py", "Python"), ("source.c", "C"), ("a.zzz", "Text only")],
)
def test_a_source_is_coloured_by_what_it_is_called(file: str, name: str) -> None:
    assert source_lexer(file).name == name


@pytest.mark.parametrize(
    ("target", "text", "name"),
    [
        ("gfx942", "", "AMDGPU listing"),
        ("cpu", "", "GAS"),
        ("cpu-gfx1100", "", "GAS"),
        ("sm_90", "\t.target\tsm_90\n", "SASS listing"),
        ("sm_90", "\n.version 8.0\n.target sm_90\n", "PTX listing"),
    ],
)
def test_a_listing_is_coloured_as_its_reader_says(target: str, text: str, name: str) -> None:
    assert listing_lexer(reader_of(targets.find(target)).dialect_of(text)).name == name
