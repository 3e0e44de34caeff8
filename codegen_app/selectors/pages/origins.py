"""Which of a node's frames is the model's own line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def own_frame(frames: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The innermost frame outside torch's own files, else the innermost; None without any.

    A layer of torch's (``torch/nn/modules/linear.py``) says nothing of the model that calls it.
    """
    own = [frame for frame in frames if "/torch/" not in f"/{frame['file']}"]
    return next(iter([*own[-1:], *frames[-1:]]), None)
