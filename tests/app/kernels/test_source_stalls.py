"""Stalls by function and line of a kernel's source, with the code that was inlined."""

from __future__ import annotations

from typing import Any

import pytest

from codegen_app.kernels.modelled.view import InstructionRow
from codegen_app.kernels.pages.kernel.sourcestalls import Region, source_regions, stalls_by_source

SOURCE = """\
template <typename T>
struct Mover {
  struct Row { int at; };
  T held;
  static int row(int i) { return i; }
  __device__ Mover(const Problem& p,
                   int first) {
    for (int i = 0; i < 4; ++i) {
      held = first;
    }
  }
};
int declared(int i);
extern "C" __global__ void __launch_bounds__(256) kernel_tiles(float* x) {
  const auto put = [&](int stage) { x[stage] = 0; };
  put(0);
}
"""


def instruction(source: int, share: float, callers: tuple[int, ...], header: str = "") -> Any:
    figures = dict.fromkeys(("conflict", "requests", "bytes_used", "bytes_moved"))
    return InstructionRow(
        **{"index": 0, "line": 1, "source": source, "text": "s_waitcnt", "executed": 1.0},
        **{"lanes": 64.0, "issue": 1.0, "stall": share * 100, "share": share, "reasons": {}},
        **figures,
        callers=callers,
        header=header,
    )


def test_functions_are_found_by_their_braces() -> None:
    assert source_regions(SOURCE, "source.hip") == (
        Region("Mover::row", 5, 5),
        Region("Mover::Mover", 6, 11),
        Region("kernel_tiles", 14, 17),
    )


def test_functions_of_python_end_where_their_indentation_ends() -> None:
    outer = "def outer(\n    a,\n):\n    def inner(b):\n        return b\n\n    return a\n"
    source = f"import cute\n\n{outer}\nX = 1\n"
    assert source_regions(source, "kernel.py") == (Region("outer", 3, 9), Region("inner", 6, 7))


def test_a_stall_counts_where_it_is_and_where_it_was_inlined() -> None:
    regions = source_regions(SOURCE, "source.hip")
    rows = [
        instruction(9, 0.5, (16, 15), "mma:26"),  # twice in one function: counted once
        instruction(9, 0.1, (16,), "tile:4"),
        instruction(16, 0.2, ()),
        instruction(0, 0.2, ()),  # the compiler's own
    ]
    found = stalls_by_source(SOURCE, regions, rows)
    by_name = {row.name: (row.share, row.inclusive) for row in found.regions}
    assert by_name["kernel_tiles"] == (pytest.approx(0.2), pytest.approx(0.8))
    assert by_name["Mover::Mover"] == (pytest.approx(0.6), pytest.approx(0.6))
    first, second = found.lines
    assert (first.first, first.name) == (9, "held = first;")
    assert first.headers == (("mma:26", pytest.approx(0.5)), ("tile:4", pytest.approx(0.1)))
    assert (second.first, second.share) == (16, pytest.approx(0.2))
    assert second.inclusive == pytest.approx(0.8)
