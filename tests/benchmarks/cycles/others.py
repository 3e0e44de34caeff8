"""Kernels of others, and ours of the same problems, modelled; published rates beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scheduler.build.cache import CodeCache
from scheduler.build.model import Toolchain
from scheduler.cycles.kernel_file import model_file
from scheduler.cycles.report import LaunchReport, Report
from scheduler.targets import boards, find
from tests.benchmarks.cycles.published import ATTENTION, GEMM, PUBLISHED
from tests.support.families import FAMILIES, reports
from tests.support.kernels_of_others import DATA, kernels_of, launch_of

FLOPS = {GEMM: 2 * 4096.0**3, ATTENTION: 4 * 2 * 16 * 4096.0**2 * 128 / 2}
_FILES = {
    "gemm-row-major-b": (GEMM, "Triton, f16, B row-major"),
    "gemm-column-major-b": (GEMM, "Triton, f16"),
    "aiter-attention-causal": (ATTENTION, "AITER's assembly, bf16"),
}
_OURS = {"gemm, B row-major": GEMM, "gemm + gelu": GEMM, "attention, causal": ATTENTION}


@dataclass(frozen=True)
class Modelled:
    """A kernel on a board: ``conflict`` is the worst of an instruction's, cycles of LDS over those
    without."""

    problem: str
    target: str
    kernel: str
    board: str
    report: Report

    @property
    def tflops(self) -> float:
        return FLOPS[self.problem] / self.report.time_us.mid / 1e6

    @property
    def band(self) -> tuple[float, float]:
        flops = FLOPS[self.problem] / 1e6
        return flops / self.report.time_us.high, flops / self.report.time_us.low

    @property
    def conflict(self) -> float:
        return max(map(_worst, self.report.launches))

    @property
    def of_peak(self) -> float:
        (board,) = [each for each in boards(self.target) if each.name == self.board]
        return self.tflops * 1e12 / (board.peak_flops("f16") or 1.0)


def of_others() -> Iterator[Modelled]:
    """Triton's product and AITER's attention."""
    for file in sorted(DATA.glob("*.hsaco")) + sorted(DATA.glob("*.co")):
        problem, kernel = _FILES[file.stem.rpartition("-")[0]]
        kernels, target = kernels_of(file)
        board = boards(target.name)[0]
        report = model_file(kernels, target, board, launch_of(file.stem))
        yield Modelled(problem, target.name, kernel, board.name, report)


def of_ours(toolchain: Toolchain, cache: CodeCache) -> Iterator[Modelled]:
    """Our defaults for the same problems."""
    for family in FAMILIES:
        if family.name not in _OURS:
            continue
        for name in ("gfx942", "gfx950"):
            (report,) = reports(family, find(name), toolchain, cache)
            yield Modelled(
                _OURS[family.name], name, f"Kiln, {family.name}", boards(name)[0].name, report
            )


def table(rows: list[Modelled]) -> Iterator[str]:
    """Each kernel's modelled rate, and the published ones of its problem and target with the ratio
    between both."""
    for problem in FLOPS:
        for target in ("gfx942", "gfx950"):
            yield f"\n{problem}, {target}: modelled TFLOP/s (published ones beside)"
            found = [row for row in rows if (row.problem, row.target) == (problem, target)]
            for row in sorted(found, key=lambda row: -row.tflops):
                low, high = row.band
                unknown = f", unknown {dict(row.report.unknown)}" if row.report.unknown else ""
                yield (
                    f"  {row.kernel:32} {row.board:8} {row.tflops:6.0f} ({low:.0f} to {high:.0f}),"
                    f" {row.of_peak:.0%} of peak, worst conflict x{row.conflict:.2f}{unknown}"
                )
            best = max((row.tflops for row in found), default=0.0)
            for one in PUBLISHED:
                if (one.problem, one.target) == (problem, target):
                    yield (
                        f"  published: {one.kernel}, {one.board}: {one.tflops:.0f};"
                        f" best modelled / published {best / one.tflops:.2f}  [{one.source}]"
                    )


def _worst(launch: LaunchReport) -> float:
    return max((each.conflict or 1.0 for each in launch.instructions), default=1.0)
