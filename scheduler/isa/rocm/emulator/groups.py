"""Splits and merges groups of waves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.isa.rocm.emulator.state import Group, Value, collapse


def split(group: Group, columns: list[int]) -> Group:
    """Return a group of some of the waves."""
    waves = [group.waves[column] for column in columns]
    result = _empty_like(group, waves, group.blocks[columns])
    result.set_registers(np.ascontiguousarray(group.v[:, columns]))
    if group.scratch is not None:
        result.scratch = group.scratch[columns]
    result.s = [_select_columns(value, columns) for value in group.s]
    result.scc = _select_columns(group.scc, columns)
    result.refresh()
    return result


def merge_groups(several: Sequence[Group]) -> Group:
    """Merge groups at the same instruction into one, with waves in the order of their numbers."""
    waves = [wave for group in several for wave in group.waves]
    order = sorted(range(len(waves)), key=waves.__getitem__)
    first = several[0]
    blocks = np.concatenate([group.blocks for group in several])[order]
    result = _empty_like(first, [waves[column] for column in order], blocks)
    result.pc = first.pc
    result.set_registers(np.concatenate([group.v for group in several], axis=1)[:, order])
    if first.scratch is not None:
        parts = [group.scratch for group in several if group.scratch is not None]
        result.scratch = np.concatenate(parts)[order]
    counts = [group.count for group in several]
    result.s = [
        _concat_values(values, counts, order)
        for values in zip(*(group.s for group in several), strict=True)
    ]
    result.scc = _concat_values([group.scc for group in several], counts, order)
    result.refresh()
    return result


def _empty_like(
    like: Group, waves: list[int], blocks: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
) -> Group:
    return Group(like.machine, waves, blocks, 1)


def _select_columns(value: Value, columns: list[int]) -> Value:
    return value if isinstance(value, int) else collapse([value[column] for column in columns])


def _concat_values(values: Sequence[Value], counts: list[int], order: list[int]) -> Value:
    first = values[0]
    if isinstance(first, int) and all(
        isinstance(value, int) and value == first for value in values
    ):
        return first
    whole: list[int] = []
    for value, count in zip(values, counts, strict=True):
        whole += [value] * count if isinstance(value, int) else value
    return collapse([whole[column] for column in order])
