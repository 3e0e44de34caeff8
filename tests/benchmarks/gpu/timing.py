"""Times of what runs on torch's stream: in a CUDA graph, the second-level cache emptied before each
sample, by events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch

_SAMPLES = 30
_FLUSHED_BYTES = 256 << 20


@dataclass(frozen=True)
class Time:
    """Microseconds of one call: the median, and the middle half."""

    median: float
    low: float
    high: float
    n: int


def captured(call: Callable[[], object]) -> torch.cuda.CUDAGraph:
    """The launches of a call, ready to be replayed."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph


def timed(call: Callable[[], object], samples: int = _SAMPLES) -> Time:
    """Of a call that launches on torch's current stream and always the same."""
    graph = captured(call)
    flushed = torch.empty(_FLUSHED_BYTES, dtype=torch.uint8, device="cuda")
    found = []
    for _ in range(samples + 3):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flushed.zero_()
        start.record()
        graph.replay()
        stop.record()
        stop.synchronize()
        found.append(start.elapsed_time(stop) * 1e3)
    kept = sorted(found[3:])
    return Time(median(kept), kept[samples // 4], kept[3 * samples // 4], samples)
