"""Spaces with made-up times that behave as kernels' do: cliffs, failures, a few good corners."""

from __future__ import annotations

from itertools import product

import numpy as np

from scheduler.tuning.space import Space
from tests.support.replay import RecordedSpace


def tiled(seed: int) -> RecordedSpace:
    """A tiled kernel of random character: work a block, occupancy in steps, switches that matter
    in some corners only, failures where a limit is passed, and some noise."""
    rng = np.random.default_rng(seed)
    blocks, tiles, switches = (16, 32, 48, 64, 96, 128, 256), (1, 2, 3, 4, 8), (0, 1)
    configs = [
        {"bx": bx, "by": by, "tx": tx, "ty": ty, "staged": staged, "padded": padded, "order": order}
        for bx, by, tx, ty, staged, padded, order in product(
            blocks, (1, 2, 4, 8), tiles, tiles, switches, switches, ("rows", "columns")
        )
        if 32 <= bx * by <= 1024 and (staged or not padded)
    ]
    registers, lds, latency = rng.uniform(4, 12), rng.uniform(20, 90), rng.uniform(0.2, 2.0)
    bonus, conflict, by_order = rng.uniform(0.3, 0.9), rng.uniform(1.1, 2.5), rng.uniform(0.7, 1.4)
    times = [
        _time(config, registers, lds, latency, bonus, conflict, by_order) for config in configs
    ]
    noise = rng.lognormal(0.0, 0.01, len(times))
    return RecordedSpace(f"tiled {seed}", Space(tuple(configs)), np.array(times) * noise)


def _time(
    config: dict[str, int | str],
    registers: float,
    lds: float,
    latency: float,
    bonus: float,
    conflict: float,
    by_order: float,
) -> float:
    bx, by, tx, ty = (int(config[name]) for name in ("bx", "by", "tx", "ty"))
    threads, area = bx * by, tx * ty
    if config["staged"] and threads * area * 4 > 65536:
        return float("nan")
    used = 16 + registers * area
    waves = min(8, int(512 // used), int(65536 // (threads * area * 4 + 1)) + 1)
    if waves < 1:
        return float("nan")
    idle = -(-threads // 64) * 64 / threads
    time = idle * (1 + latency / waves) * (1 + 1.0 / area + abs(tx - ty) / 16)
    if config["staged"]:
        time *= bonus * (1 if config["padded"] or bx % 32 else conflict)
    else:
        time *= 1 + lds / (8 * bx)
    return time * (by_order if config["order"] == "rows" and tx > 1 else 1.0)
