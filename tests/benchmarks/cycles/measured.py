"""The hand-made kernels on an H200, measured, beside what the model says of them on AMD's GPUs.

The mechanisms are shared: 32 banks of 4 bytes, lines of 128 bytes of which a wave uses a part. How
large an effect is differs; which variant is slower, and by about how much, does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scipy.stats import spearmanr

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.flags import Flags
from scheduler.build.model import Build, Toolchain
from scheduler.cycles.kernel_file import model_file, read_kernels
from scheduler.cycles.launches.parser import read_launch
from tests.benchmarks.cycles.h200 import ELEMENTS, SHARED, STRIDED, THREADS
from tests.support.kernels_of_others import DATA, FOLDER

MEASURED = DATA / "h200.json"
_ROUNDS = 64
GROUPS = {
    "32-bit reads of shared memory": [name for name in SHARED if "_w1_" in name],
    "64-bit reads of shared memory": [name for name in SHARED if "_w2_" in name],
    "128-bit reads of shared memory": [name for name in SHARED if "_w4_" in name],
    "strided loads": STRIDED,
}
LEAST_CORRELATION = 0.9


@dataclass(frozen=True)
class Beside:
    """A group's kernels: times over the first one's, measured and modelled, and how alike the two
    rankings are (Spearman's coefficient)."""

    group: str
    measured: Mapping[str, float]
    modelled: Mapping[str, float]

    @property
    def correlation(self) -> float:
        names = list(self.measured)
        found = spearmanr([self.measured[n] for n in names], [self.modelled[n] for n in names])
        return float(found.statistic)


def beside(target: str, toolchain: Toolchain, cache: CodeCache) -> Iterator[Beside]:
    """All groups, modelled on a target's first board."""
    times = json.loads(MEASURED.read_text())["microseconds"]
    for group, names in GROUPS.items():
        modelled = {name: modelled_us(name, target, toolchain, cache) for name in names}
        measured = {name: float(times[name]["median"]) for name in names}
        yield Beside(group, _over_first(measured), _over_first(modelled))


def modelled_us(name: str, target: str, toolchain: Toolchain, cache: CodeCache) -> float:
    """One kernel's modelled time, with every compute unit full."""
    is_shared = name in SHARED
    found = targets.find(target)
    source = (FOLDER / ("shared_memory.hip" if is_shared else "global_memory.hip")).read_text()
    result = build(source, "none", found, toolchain, cache, Flags())
    assert isinstance(result, Build), result.detail
    board = targets.boards(target)[0]
    buffer = {"buffer": "float32", "elements": ELEMENTS}
    blocks = 4 * board.compute_units if is_shared else ELEMENTS // THREADS
    launch: dict[str, Any] = {
        "function": name,
        "grid": [blocks],
        "block": [THREADS],
        "arguments": [buffer, _ROUNDS] if is_shared else [buffer, buffer],
    }
    kernels = read_kernels(result.directory / "kernel.s", found)
    return model_file(kernels, found, board, read_launch(json.dumps(launch))).time_us.mid


def table(rows: list[Beside]) -> Iterator[str]:
    for row in rows:
        yield f"\n{row.group}: times over the first one's, H200 measured / modelled"
        for name, time in row.measured.items():
            yield f"  {name:16} {time:6.2f}  {row.modelled[name]:6.2f}"
        yield f"  rankings alike: {row.correlation:.2f}"


def _over_first(times: Mapping[str, float]) -> dict[str, float]:
    first = next(iter(times.values()))
    return {name: time / first for name, time in times.items()}
