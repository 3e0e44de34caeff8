"""Limits of the kernel templates on a GPU."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TemplateLimits:
    """Limits that depend on registers and LDS, as measured or modelled.

    Registers are of one lane. ``gemm_registers`` is the maximum for accumulators and the next tile,
    so that the operands of the multiplication and the addresses still fit; with
    ``gemm_registers_by_waves`` also what the waves of a block leave of a SIMD's registers.
    ``attention_registers`` is the maximum of an attention kernel, ``ample_attention_registers`` up
    to which more blocks are resident. ``attention_blocks_per_unit`` blocks have enough loads in
    flight to saturate a compute unit's memory path. ``attention_columns`` is the minimum of a block
    if there are so many columns that they are split anyway. ``estimates_attention``: whether the
    time of attention is estimated for the default.
    """

    gemm_registers: int = 144
    gemm_registers_by_waves: bool = False
    attention_registers: int = 216
    ample_attention_registers: int = 216
    attention_blocks_per_unit: int = 4
    attention_columns: int = 256
    estimates_attention: bool = False
