"""The limits of a run: kernels are untrusted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """``steps`` are instructions executed, summed over the waves; ``calls`` instructions executed
    by a group of waves at once (which determine the time). ``waves`` are those run at a time;
    ``pages`` of memory (4096 bytes) may be accessed; ``recorded`` is the number of addresses that
    traces may hold. When a limit is reached, waves are cut and their traces say so. A launch with
    more ``registers`` (and words of scratch) in all lanes together is rejected."""

    steps: int = 50_000_000
    calls: int = 2_000_000
    waves: int = 1024
    pages: int = 1 << 17
    recorded: int = 1 << 25
    registers: int = 1 << 27
