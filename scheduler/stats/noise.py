"""What measurements of the same code vary by."""
from __future__ import annotations
from dataclasses import dataclass

@dataclass(frozen=True)
class NoiseFloor:
    noise: float = 0.0
    shift: float = 0.0
