"""Search on a recorded space: every configuration was measured once, the file answers.

The format is Kernel Tuner's cache file (also its simulation mode's), plain or gzipped JSON.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scheduler.errors import UserError
from scheduler.tuning.space import Floats, Space
from scheduler.tuning.strategies.strategy import History, Strategy

MAX_BYTES = 512 * 2**20


@dataclass(frozen=True)
class RecordedSpace:
    """A space with the time of each configuration; nan where it failed."""

    name: str
    space: Space
    times: Floats

    @property
    def best(self) -> float:
        """The least time of all."""
        return float(np.nanmin(self.times))


def read(path: Path) -> RecordedSpace:
    """Read a recorded space. Raises ``UserError`` naming what is wrong with the file."""
    data = _read_json(path)
    try:
        names = list(data["tune_params_keys"])
        entries = list(data["cache"].values())
        configs = tuple({name: entry[name] for name in names} for entry in entries)
        times = np.array([_time(entry["time"]) for entry in entries])
        name = str(data["device_name"])
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is no Kernel Tuner cache file: {error!r} is missing") from None
    if not configs or np.isnan(times).all():
        raise UserError(f"{path} holds no configuration that was measured")
    return RecordedSpace(name, Space(configs), times)


def replay(
    recorded: RecordedSpace, strategy: Strategy, budget: int, until: Callable[[float], bool]
) -> History:
    """Let a strategy search with at most ``budget`` evaluations, or until a time satisfies."""
    history = History(len(recorded.space))
    while len(history) < budget:
        index = strategy.propose(history)
        if index is None:
            break
        time = float(recorded.times[index])
        history.add(index, time)
        if until(time):
            break
    return history


def performance_curve(history: History, best: float) -> Floats:
    """After each evaluation, the share of the best performance reached so far (0 to 1)."""
    times = np.nan_to_num(np.array(history.times), nan=np.inf)
    return best / np.minimum.accumulate(times)


def _time(value: Any) -> float:
    """Kernel Tuner records a failure as text or as 1e20."""
    if isinstance(value, int | float) and 0 < value < 1e19:
        return float(value)
    return float("nan")


def _read_json(path: Path) -> Any:
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as file:
                text = file.read(MAX_BYTES + 1)
        else:
            with path.open("rb") as plain:
                text = plain.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise UserError(f"{path} holds more than {MAX_BYTES // 2**20} MiB")
        return json.loads(text)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise UserError(f"{path} cannot be read as JSON: {error}") from None
