"""Reference of indexed writes, of replaced slices, and of the gradients of slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.ir.numerics import wrap_integer
from scheduler.ir.reference.indexing import gather_index, numpy_index
from scheduler.ir.reference.rule import Args, Array, UnsupportedUseError, is_float

_COMBINE = {
    "sum": np.add,
    "add": np.add,
    "mean": np.add,
    "prod": np.multiply,
    "multiply": np.multiply,
    "amax": np.maximum,
    "amin": np.minimum,
}


def _scatter_operands(a: Args) -> tuple[Array, tuple[Array, ...], Any]:
    """Return a copy of ``self`` with at least one axis, the positions given by ``index`` along
    ``dim``, and the source."""
    result, index = np.atleast_1d(a["self"].copy()), np.atleast_1d(a["index"])
    source = a["value"] if a.get("src") is None else np.atleast_1d(a["src"])
    if np.ndim(source):
        source = source[tuple(slice(size) for size in index.shape)]
    source = np.asarray(source).astype(result.dtype)
    return result, gather_index(index, a["dim"] % result.ndim), source


def scatter(a: Args) -> Array:
    result, where, source = _scatter_operands(a)
    if a.get("reduce") is not None:
        _combine(a["reduce"]).at(result, where, source)
    else:
        result[where] = source
    return result.reshape(a["self"].shape)


def scatter_add(a: Args) -> Array:
    result, where, source = _scatter_operands(a)
    np.add.at(result, where, source)
    return result.reshape(a["self"].shape)


def scatter_reduce(a: Args) -> Array:
    result, where, source = _scatter_operands(a)
    return _reduce_into(a, result, where, source).reshape(a["self"].shape)


def _combine(reduce: Any) -> np.ufunc:
    if reduce not in _COMBINE:
        raise UnsupportedUseError(f"a reduction by {reduce!r} is not supported")
    return _COMBINE[reduce]


def _reduce_into(a: Args, result: Array, where: Any, source: Array) -> Array:
    """Reduce the source into the result, or overwrite it."""
    combine, original = _combine(a["reduce"]), result.copy()
    count = np.zeros(result.shape, dtype=np.int64)
    np.add.at(count, where, 1)
    if not a["include_self"]:
        result[count > 0] = _neutral(a["reduce"], result.dtype)
    with np.errstate(all="ignore"):
        combine.at(result, where, source)
        if a["reduce"] == "mean":
            number = np.maximum(count + int(a["include_self"]), 1)
            result = result / number if is_float(result) else result // number
    return np.where(count > 0, result, original).astype(original.dtype)


def _neutral(reduce: Any, dtype: Any) -> Any:
    if reduce not in ("amax", "amin"):
        return _COMBINE[reduce].identity
    if dtype == np.bool_:
        return reduce == "amin"
    if np.issubdtype(dtype, np.floating):
        return np.inf if reduce == "amin" else -np.inf
    return np.iinfo(dtype).max if reduce == "amin" else np.iinfo(dtype).min


def _slice_operands(a: Args, source: Any) -> tuple[Array, Array, Any]:
    """Return a copy of ``self`` with ``dim`` first, the indices along it, and the source alike."""
    result, index = np.atleast_1d(a["self"].copy()), np.atleast_1d(a["index"])
    dim = a["dim"] % result.ndim
    result = np.moveaxis(result, dim, 0)
    if np.ndim(source) or source is a.get("source"):
        shape = (len(index), *result.shape[1:])
        source = np.asarray(source)
        source = np.moveaxis(source, dim, 0) if source.ndim else source
        source = source.reshape(shape)
    return result, index, source


def _restore_dim(a: Args, result: Array) -> Array:
    dim = a["dim"] % result.ndim
    return np.asarray(np.moveaxis(result, 0, dim).reshape(a["self"].shape))


def index_add(a: Args) -> Array:
    result, index, source = _slice_operands(a, a["source"])
    is_integer = result.dtype.kind in "iu"
    alpha = wrap_integer(a["alpha"], result.dtype) if is_integer else np.asarray(a["alpha"])
    np.add.at(result, index, source * alpha.astype(result.dtype))
    return _restore_dim(a, result)


def index_copy(a: Args) -> Array:
    result, index, source = _slice_operands(a, a["source"])
    result[index] = source
    return _restore_dim(a, result)


def index_fill(a: Args) -> Array:
    value = a["value"]
    result, index, _ = _slice_operands(a, 0)
    result[index] = value.item() if isinstance(value, np.ndarray) else value
    return _restore_dim(a, result)


def index_reduce(a: Args) -> Array:
    result, index, source = _slice_operands(a, a["source"])
    return _restore_dim(a, _reduce_into(a, result, index, source))


def index_put(a: Args) -> Array:
    result = a["self"].copy()
    if a["accumulate"]:
        np.add.at(result, numpy_index(a["indices"]), a["values"])
    else:
        result[numpy_index(a["indices"])] = a["values"]
    return np.asarray(result)


def masked_put(a: Args) -> Array:
    """Accumulating ``index_put`` where the mask holds; indices outside count from the end or are
    clamped."""
    result, mask = a["self"].copy(), a["mask"].astype(bool)
    index_arrays: list[Any] = []
    for axis, index in enumerate(a["indices"]):
        size = result.shape[axis]
        wrapped = None if index is None else np.where(index < 0, index + size, index)
        index_arrays.append(
            slice(None) if wrapped is None else np.clip(wrapped, 0, max(size - 1, 0))
        )
    if result.size:
        values = np.where(mask, a["values"], np.zeros((), result.dtype)).astype(result.dtype)
        np.add.at(result, tuple(index_arrays), values)
    return np.asarray(result)


def embedding_renorm(a: Args) -> Array:
    """Scale requested rows whose norm exceeds ``max_norm`` to that norm."""
    result, rows = a["self"].copy(), np.unique(a["indices"])
    norms = np.linalg.norm(result[rows], ord=a["norm_type"], axis=1)
    scale = np.where(norms > a["max_norm"], a["max_norm"] / (norms + 1e-7), 1.0)
    result[rows] *= scale[:, None]
    return np.asarray(result)


def masked_scatter(a: Args) -> Array:
    shape = np.broadcast_shapes(a["self"].shape, a["mask"].shape)
    result = np.broadcast_to(a["self"], shape).copy()
    mask = np.broadcast_to(a["mask"], shape).astype(bool)
    result[mask] = a["source"].reshape(-1)[: np.count_nonzero(mask)]
    return result


def put(a: Args) -> Array:
    line = a["self"].reshape(-1).copy()
    index, source = a["index"].reshape(-1), a["source"].reshape(-1)
    if a["accumulate"]:
        np.add.at(line, index, source)
    else:
        line[index] = source
    return np.asarray(line.reshape(a["self"].shape))


def embedding_dense_backward(a: Args) -> Array:
    grad, indices = a["grad_output"], a["indices"].reshape(-1)
    grad = grad.reshape(-1, grad.shape[-1])
    result = np.zeros((int(a["num_weights"]), grad.shape[-1]), dtype=grad.dtype)
    used = indices != a["padding_idx"] if a["padding_idx"] >= 0 else np.ones(len(indices), bool)
    indices, grad = indices[used], grad[used]
    if a["scale_grad_by_freq"]:
        grad = grad / np.bincount(indices, minlength=len(result))[indices][:, None]
    np.add.at(result, indices, grad)
    return result


def _write_slice(result: Array, a: Args, part: Array) -> Array:
    position = [slice(None)] * result.ndim
    position[a["dim"]] = slice(a["start"], a["end"], a["step"])
    result[tuple(position)] = part
    return np.asarray(result)


def _write_select(result: Array, a: Args, part: Array) -> Array:
    position: list[Any] = [slice(None)] * result.ndim
    position[a["dim"]] = a["index"]
    result[tuple(position)] = part
    return np.asarray(result)


def _write_diagonal(result: Array, a: Args, part: Array) -> Array:
    diagonal = np.diagonal(result, a["offset"], a["dim1"], a["dim2"])
    diagonal.flags.writeable = True
    diagonal[...] = part
    return np.asarray(result)


def _zeros(a: Args) -> Array:
    return np.zeros(a["input_sizes"], dtype=a["grad_output"].dtype)


def slice_scatter(a: Args) -> Array:
    return _write_slice(a["self"].copy(), a, a["src"])


def select_scatter(a: Args) -> Array:
    return _write_select(a["self"].copy(), a, a["src"])


def diagonal_scatter(a: Args) -> Array:
    return _write_diagonal(a["self"].copy(), a, a["src"])


def slice_backward(a: Args) -> Array:
    return _write_slice(_zeros(a), a, a["grad_output"])


def select_backward(a: Args) -> Array:
    return _write_select(_zeros(a), a, a["grad_output"])


def diagonal_backward(a: Args) -> Array:
    return _write_diagonal(_zeros(a), a, a["grad_output"])


def unfold_backward(a: Args) -> Array:
    grad, step = a["grad_in"], a["step"]
    result = np.zeros(a["input_sizes"], dtype=grad.dtype)
    if not result.ndim:
        return np.asarray(grad.reshape(()))
    rows = np.moveaxis(result, a["dim"], 0)
    windows = np.moveaxis(grad, a["dim"] % result.ndim, 0)
    starts = np.arange(len(windows)) * step
    for position in range(a["size"]):
        np.add.at(rows, starts + position, windows[..., position])
    return result
