"""Times of what runs on torch's stream: each in a CUDA graph, by events, the second-level cache
emptied before each sample, the contenders one after the other in every round."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from scheduler.runtime.nvml import Monitor

FLUSHED_BYTES = 256 << 20
_WARM_UP = 3


def captured(call: Callable[[], object]) -> torch.cuda.CUDAGraph:
    """The launches of a call, ready to be replayed."""
    side: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(_WARM_UP):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph


def timed(
    calls: Mapping[str, Callable[[], object]], rounds: int, monitor: Monitor
) -> tuple[dict[str, list[float]], dict[str, dict[str, float]]]:
    """Microseconds of each call, and the least and most of what the GPU read of itself meanwhile.

    Each call launches on torch's current stream, and always the same.
    """
    graphs = {name: captured(call) for name, call in calls.items()}
    flushed = torch.empty(FLUSHED_BYTES, dtype=torch.uint8, device="cuda")
    found: dict[str, list[float]] = {name: [] for name in graphs}
    readings = []
    for place in range(rounds + _WARM_UP):
        for name, graph in graphs.items():
            time = _sample(graph, flushed)
            if place >= _WARM_UP:
                found[name].append(time)
        readings.append(monitor.read())
    return found, extremes(readings[_WARM_UP:])


def extremes(readings: Iterable[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """The least and the most of each reading."""
    found: dict[str, dict[str, float]] = {}
    for one in readings:
        for name, value in one.items():
            seen = found.setdefault(name, {"min": value, "max": value})
            seen["min"], seen["max"] = min(seen["min"], value), max(seen["max"], value)
    return found


def _sample(graph: torch.cuda.CUDAGraph, flushed: torch.Tensor) -> float:
    flushed.zero_()
    return elapsed(graph)


def elapsed(graph: torch.cuda.CUDAGraph) -> float:
    """Microseconds of one replay."""
    start, stop = _event(), _event()
    start.record()
    graph.replay()
    stop.record()
    stop.synchronize()
    return float(start.elapsed_time(stop) * 1e3)


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
