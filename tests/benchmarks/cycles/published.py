"""Rates that others measured and published, of the problems that the model is held against."""

from __future__ import annotations

from dataclasses import dataclass

_PAPER = "HipKittens: Fast and Furious AMD Kernels, arXiv 2511.08083"
_FILES = "github.com/HazyResearch/HipKittens at 978e0c5"


@dataclass(frozen=True)
class Published:
    """``tflops`` measured on a board with ``target``; ``kernel`` is whose it was."""

    problem: str
    target: str
    board: str
    kernel: str
    tflops: float
    source: str


GEMM, ATTENTION = "gemm 4096", "attention, causal, 4096, depth 128"

PUBLISHED = (
    Published(GEMM, "gfx942", "MI325X", "hipBLASLt, bf16", 753, _PAPER),
    Published(GEMM, "gfx942", "MI325X", "HipKittens, bf16", 714, _PAPER),
    Published(
        *(GEMM, "gfx950", "MI350X", "hipBLASLt (by PyTorch), bf16", 1038),
        f"{_FILES}, analysis/mi350x_data_to_log.json",
    ),
    Published(
        *(GEMM, "gfx950", "MI350X", "HipKittens, bf16", 1075),
        f"{_FILES}, analysis/mi350x_data_to_log.json",
    ),
    Published(ATTENTION, "gfx950", "MI355X", "AITER, bf16, 16 heads", 1069, _PAPER),
)
