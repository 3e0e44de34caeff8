"""What a problem is: a small torch module with example inputs, or a whole sample model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tests.benchmarks.gpu.results import COMPILE, COPY, Bar

MOST_CACHED = 64_000_000  # bytes; above, what is moved must come from memory
OF_COPY = 0.85  # of the copy's rate


@dataclass(frozen=True)
class Loaded:
    """A problem on a device: what torch calls, with which inputs, and what Kiln reads; ``file`` is
    where that lies already, None where the program is still to be saved."""

    module: Any
    inputs: tuple[torch.Tensor, ...]
    program: Any
    file: Path | None = None


@dataclass(frozen=True)
class Problem:
    """``load`` makes it on a device. ``flops`` and ``moved_bytes`` are what it needs at least;
    ``dynamic`` says that it has symbolic sizes. ``roundings`` are those of one element where that
    is more than the operations: a sum whose parts are kept in the result's own dtype."""

    name: str
    load: Callable[[str], Loaded]
    flops: float = 0.0
    moved_bytes: float = 0.0
    dynamic: bool = False
    bars: tuple[Bar, ...] = ()
    roundings: int = 0
    copied: bool = False

    @property
    def copied_bytes(self) -> int:
        """What that copy reads; 0 where there is none."""
        return int(self.moved_bytes / 2) if self.copied else 0


class Of(torch.nn.Module):
    """A module of a function."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        return self._function(*args)


def exported(
    module: Callable[[], torch.nn.Module],
    shapes: Sequence[Sequence[int]],
    dynamic: Any = None,
    *,
    dtype: torch.dtype = torch.bfloat16,
    layout: torch.memory_format = torch.contiguous_format,
) -> Callable[[str], Loaded]:
    """A module of one dtype with inputs of these shapes; ``dynamic`` as torch.export's
    ``dynamic_shapes``."""

    def load(device: str) -> Loaded:
        made = module().to(device, dtype).eval().to(memory_format=layout)
        inputs = tuple(
            torch.randn(*shape, device=device, dtype=dtype).to(memory_format=layout)
            for shape in shapes
        )
        return Loaded(made, inputs, torch.export.export(made, inputs, dynamic_shapes=dynamic))

    return load


def beside_compile(at_most: float) -> tuple[Bar, ...]:
    """Our fastest, over torch.compile's time."""
    return (Bar(COMPILE, at_most),)


def beside_copy(at_most: float, moved_bytes: float) -> tuple[Bar, ...]:
    """The same; above 64 MB at the rate of a copy besides, nearly."""
    copy = (Bar(COPY, round(1 / OF_COPY, 3)),) if moved_bytes > MOST_CACHED else ()
    return (*beside_compile(at_most), *copy)
