"""What series, revisions and conditions are called: the same when built and when sent."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from scheduler.results.points.model import RevisionKey, SeriesKey
from tests.benchmarks.tracking.content import Suite

_DEVICES = ("NVIDIA H200", "NVIDIA H100", "AMD Instinct MI300X", "AMD Radeon RX 7900 XTX")
_TARGETS = ("sm_90", "sm_90", "gfx942", "gfx1100")
_KINDS = ("mm", "bmm", "addmm", "attention", "softmax", "layer_norm", "gelu", "sum", "convolution")


def series_key(number: int) -> SeriesKey:
    """A series' identity."""
    place, rest = number % len(_DEVICES), number // len(_DEVICES)
    kind, size = _KINDS[rest % len(_KINDS)], rest // len(_KINDS)
    return SeriesKey(
        problem=f"{kind} of bench {size}",
        sizes={"M": 64 * (1 + size % 64), "N": 128 * (1 + size % 32)},
        target=_TARGETS[place],
        device=_DEVICES[place],
        toolchain="clang" if place > 1 else "nvcc",
        metric="time",
        unit="ns",
    )


def revision_key(suite: Suite, number: int, at: datetime | None = None) -> RevisionKey:
    """A revision of a suite; the last one is a branch's."""
    name = hashlib.sha256(f"{suite.name} {number}".encode()).hexdigest()[:40]
    branch = "faster-products" if number == suite.n_revisions - 1 else "main"
    return RevisionKey(name, at, branch, f"https://example.org/{suite.name}")


def facts(number: int, epoch: int) -> dict[str, Any]:
    """What a series was measured under since it changed the last time."""
    code = hashlib.sha256(f"{number} {epoch}".encode()).hexdigest()
    return {
        "toolchain_version": "20.1.8" if epoch % 5 else "19.1.0",
        "flags": "-O3 -ffast-math",
        "driver": f"580.{90 + epoch % 7}",
        "runtime": "CUDA 13.0",
        "host": f"gpu-host-{number % 6}",
        "source_digest": code[::-1],
        "code_digest": code,
        "kernel": f"rocm_mm_{code[:8]}",
        "config": {"tile_m": 64 << epoch % 3, "tile_n": 128, "tile_k": 32, "stages": 2 + epoch % 3},
        "resources": {"vgprs": 96 + 8 * (epoch % 8), "sgprs": 40, "lds_bytes": 32768, "spills": 0},
        "clocks": {"sm_clock": 1980, "memory_clock": 3201},
    }
