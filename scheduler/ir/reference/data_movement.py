"""Reference of diagonals, flips, shuffles, concatenations and splits."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from scheduler.ir.reference.rule import Args, Array, Rule, UnsupportedUseError, is_inexact
from scheduler.ir.reference.views import diagonal, slice_op
from scheduler.limits import MAX_OUTPUTS, MAX_RESULT_ELEMENTS


def with_copy(rule: Rule) -> Rule:
    """Return a rule that copies the results of ``rule``."""

    def copy(a: Args) -> Any:
        result = rule(a)
        if isinstance(result, tuple):
            return tuple(np.array(part) for part in result)
        return np.array(result)

    return copy


def rot90(a: Args) -> Any:
    return np.rot90(a["self"], a["k"], a["dims"]).copy()


def fliplr(a: Args) -> Any:
    return np.flip(a["self"], 1).copy()


def flipud(a: Args) -> Any:
    return np.flip(a["self"], 0).copy()


def diag_embed(a: Args) -> Any:
    x, offset = a["self"], a["offset"]
    extent = x.shape[-1] + abs(offset)
    result = np.zeros((*x.shape[:-1], extent, extent), x.dtype)
    positions = np.arange(x.shape[-1])
    result[..., positions + max(-offset, 0), positions + max(offset, 0)] = x
    return np.moveaxis(result, (-2, -1), (a["dim1"], a["dim2"]))


def diag(a: Args) -> Array:
    return np.array(np.diag(a["self"], a["diagonal"]))


def diagflat(a: Args) -> Array:
    return np.diagflat(a["self"], a["offset"])


def linalg_diagonal(a: Args) -> Any:
    return diagonal({**a, "self": a["A"]})


def trace(a: Args) -> Any:
    x = a["self"]
    return np.asarray(np.trace(x if is_inexact(x) else x.astype(np.int64)))


def tensor_split(a: Args) -> tuple[Array, ...]:
    x, dim = a["self"], a["dim"] % a["self"].ndim
    if "tensor_indices_or_sections" in a:
        return _split(x, dim, np.asarray(a["tensor_indices_or_sections"]).tolist())
    return _split(x, dim, a["sections"] if "sections" in a else a["indices"])


def chunk_cat(a: Args) -> Array:
    """Split each tensor into chunks along an axis, padded with zeros, and concatenate them."""
    chunks, parts = a["num_chunks"], []
    axis = a["dim"] % a["tensors"][0].ndim
    for x in a["tensors"]:
        rows = -(-x.shape[axis] // chunks)
        if rows * chunks * max(x.size, 1) > MAX_RESULT_ELEMENTS * max(x.shape[axis], 1):
            raise UnsupportedUseError(f"a result of {chunks} chunks is too large")
        padding = [(0, rows * chunks - x.shape[d] if d == axis else 0) for d in range(x.ndim)]
        width = rows * math.prod(x.shape[axis + 1 :])
        parts.append(np.pad(x, padding).reshape(*x.shape[:axis], chunks, width))
    return np.concatenate(parts, axis=axis + 1)


def flatten_dense_tensors(a: Args) -> Array:
    return np.concatenate([x.reshape(-1) for x in a["tensors"]])


def combinations(a: Args) -> Array:
    """Return rows of ``r`` elements, in the order of their positions."""
    x, r = a["self"], a["r"]
    if r == 0:
        return np.zeros(0, x.dtype)
    n = len(x) + r - 1 if a["with_replacement"] else len(x)
    if r < 0 or math.comb(n, min(r, n)) * r > MAX_RESULT_ELEMENTS:
        raise UnsupportedUseError(f"the number of combinations of {r} out of {len(x)} is too large")
    choose = (
        itertools.combinations_with_replacement if a["with_replacement"] else itertools.combinations
    )
    rows = np.array(list(choose(range(len(x)), r)), np.int64).reshape(-1, r)
    return np.asarray(x[rows])


def split_along(dim: int) -> Rule:
    """hsplit, vsplit, dsplit; hsplit splits the only dimension of a vector."""

    def rule(a: Args) -> tuple[Array, ...]:
        x = a["self"]
        axis = 0 if dim == 1 and x.ndim == 1 else dim
        return _split(x, axis, a["sections"] if "sections" in a else a["indices"])

    return rule


def _split(x: Array, dim: int, positions: Any) -> tuple[Array, ...]:
    """Split into sections of nearly equal size, or at positions like Python slices."""
    length = x.shape[dim]
    if isinstance(positions, int):
        if not 0 < positions <= MAX_OUTPUTS:
            raise UnsupportedUseError(f"a split into {positions} sections is not supported")
        least, longer = divmod(length, positions)
        sizes = [least + 1] * longer + [least] * (positions - longer)
        ends = [0, *itertools.accumulate(sizes)]
        pairs = list(itertools.pairwise(ends))
    else:
        starts = [0, *positions]
        pairs = list(zip(starts, [*positions, length], strict=True))
    return tuple(
        slice_op({"self": x, "dim": dim, "start": start, "end": end, "step": 1})
        for start, end in pairs
    )


def atleast(rank: int) -> Rule:
    function = {1: np.atleast_1d, 2: np.atleast_2d, 3: np.atleast_3d}[rank]

    def rule(a: Args) -> Any:
        if "tensors" in a:
            return tuple(function(x) for x in a["tensors"])
        return function(a["self"])

    return rule


def _stack_rule(stack: Any) -> Rule:
    return lambda a: stack(a["tensors"])


hstack, vstack, dstack = _stack_rule(np.hstack), _stack_rule(np.vstack), _stack_rule(np.dstack)


def column_stack(a: Args) -> Array:
    return np.concatenate([x if x.ndim > 1 else x.reshape(-1, 1) for x in a["tensors"]], axis=1)


def block_diag(a: Args) -> Array:
    blocks = [np.atleast_2d(x) for x in a["tensors"]]
    rows, columns = (sum(block.shape[d] for block in blocks) for d in (0, 1))
    if rows * columns > MAX_RESULT_ELEMENTS:
        raise UnsupportedUseError(f"a result of {rows} by {columns} elements is too large")
    result = np.zeros((rows, columns), np.result_type(*blocks))
    row = column = 0
    for block in blocks:
        result[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return result


def cartesian_prod(a: Args) -> Any:
    tensors = a["tensors"]
    if len(tensors) == 1:
        return np.array(tensors[0])
    if math.prod(x.size for x in tensors) * len(tensors) > MAX_RESULT_ELEMENTS:
        raise UnsupportedUseError("the number of combinations is too large")
    grids = np.meshgrid(*tensors, indexing="ij")
    return np.stack([grid.reshape(-1) for grid in grids], axis=1)


def pixel_unshuffle(a: Args) -> Array:
    x, r = a["self"], a["downscale_factor"]
    *lead, channels, height, width = x.shape
    split = x.reshape(*lead, channels, height // r, r, width // r, r)
    n = len(lead)
    moved = split.transpose(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return np.asarray(moved.reshape(*lead, channels * r * r, height // r, width // r))


def channel_shuffle(a: Args) -> Array:
    x, groups = a["self"], a["groups"]
    split = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    return np.asarray(split.swapaxes(1, 2).reshape(x.shape))


def take(a: Args) -> Array:
    return np.asarray(a["self"].reshape(-1)[a["index"]])


def ravel(a: Args) -> Array:
    return np.asarray(a["self"].reshape(-1))


def vander(a: Args) -> Any:
    columns = a["x"].size if a["N"] is None else a["N"]
    if columns * max(a["x"].size, 1) > MAX_RESULT_ELEMENTS:
        raise UnsupportedUseError(f"a result of {columns} columns is too large")
    return np.vander(a["x"], columns, a["increasing"])


def matrix_power(a: Args) -> Array:
    return np.asarray(np.linalg.matrix_power(a["self"], a["n"]))


def sum_to_size(a: Args) -> Any:
    x, size = a["self"], tuple(a["size"])
    lead = x.ndim - len(size)
    over = tuple(d for d in range(x.ndim) if d < lead or size[d - lead] == 1 != x.shape[d])
    return np.asarray(x.sum(axis=over).reshape(size)) if over else x


def unsafe_masked_index(a: Args) -> Any:
    mask = np.asarray(a["mask"], bool)
    positions = tuple(
        slice(None) if index is None else np.where(mask, index, 0) for index in a["indices"]
    )
    return np.where(mask, a["self"][positions], a["fill"])
