"""Reference of losses, and of distances and similarity of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scheduler.ir.reference.normalization import log_softmax
from scheduler.ir.reference.reductions import norm as vector_norm
from scheduler.ir.reference.rule import Args, Array, Rule, UnsupportedUseError, as_float

_NONE, _MEAN, _SUM = 0, 1, 2


def _reduce(losses: Any, a: Args) -> Any:
    reduction = a["reduction"]
    if reduction == _NONE:
        return losses
    if reduction not in (_MEAN, _SUM):
        raise UnsupportedUseError(f"a loss with reduction={reduction} is not supported")
    return np.asarray(np.mean(losses) if reduction == _MEAN else np.sum(losses))


def _minus(x: Any, y: Any) -> Any:
    """Return the difference as in torch: integers in their own type, wrapping around."""
    return np.subtract(np.asarray(x), np.asarray(y))


def pair_loss(function: Callable[[Array, Array, Args], Any]) -> Rule:
    """The loss of ``self`` and ``target``, from both and the other arguments."""
    return lambda a: _reduce(function(as_float(a["self"]), as_float(a["target"]), a), a)


mse = pair_loss(lambda x, y, _: (x - y) ** 2)
soft_margin = pair_loss(lambda x, y, _: np.logaddexp(0, -y * x))


def l1(a: Args) -> Any:
    return _reduce(np.abs(_minus(a["self"], a["target"])), a)


@pair_loss
def smooth_l1(x: Array, y: Array, a: Args) -> Any:
    d, beta = np.abs(x - y), a["beta"]
    return np.where(d < beta, 0.5 * d * d / (beta or 1.0), d - 0.5 * beta)


@pair_loss
def huber(x: Array, y: Array, a: Args) -> Any:
    d, delta = np.abs(x - y), a["delta"]
    return np.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta))


@pair_loss
def binary_cross_entropy(x: Array, y: Array, a: Args) -> Any:
    loss = (y - 1) * np.maximum(np.log1p(-x), -100) - y * np.maximum(np.log(x), -100)
    return loss if a["weight"] is None else loss * a["weight"]


@pair_loss
def with_logits(x: Array, y: Array, a: Args) -> Any:
    factor = 1 if a["pos_weight"] is None else 1 + (a["pos_weight"] - 1) * y
    loss = (1 - y) * x + factor * np.logaddexp(0, -x)
    return loss if a["weight"] is None else loss * a["weight"]


@pair_loss
def kl_div(x: Array, y: Array, a: Args) -> Any:
    if a["log_target"]:
        return np.exp(y) * (y - x)
    return np.where(y == 0, 0.0, y * np.log(y)) - y * x


@pair_loss
def hinge_embedding(x: Array, y: Array, a: Args) -> Any:
    away = np.maximum(a["margin"] - x, 0)
    return np.where(y != 1, away, 0.0) + np.where(y != -1, x, 0.0)


def poisson_nll(a: Args) -> Any:
    x, y = as_float(a["input"]), as_float(a["target"])
    loss = np.exp(x) - y * x if a["log_input"] else x - y * np.log(x + a["eps"])
    if a["full"]:
        stirling = y * np.log(y) - y + 0.5 * np.log(2 * np.pi * y)
        loss = loss + np.where(y > 1, stirling, 0.0)
    return _reduce(loss, a)


def margin_ranking(a: Args) -> Any:
    product = -np.asarray(a["target"]) * _minus(a["input1"], a["input2"])
    return _reduce(np.maximum(as_float(product) + a["margin"], 0), a)


def multi_margin(a: Args) -> Any:
    x, target = np.atleast_2d(as_float(a["self"])), np.atleast_1d(a["target"])
    rows = np.arange(len(x))
    difference = np.maximum(a["margin"] - x[rows, target][:, None] + x, 0) ** a["p"]
    if a["weight"] is not None:
        difference = difference * a["weight"][target][:, None]
    difference[rows, target] = 0
    losses = difference.sum(axis=1) / x.shape[1]
    return _reduce(losses if np.ndim(a["self"]) > 1 else losses[0], a)


def multilabel_margin_forward(a: Args) -> Any:
    """Return the loss, and which classes are targets: those before the first -1."""
    x, target = np.atleast_2d(as_float(a["self"])), np.atleast_2d(a["target"])
    is_target = np.cumprod(target >= 0, axis=1).astype(bool)
    chosen = np.zeros(x.shape)
    losses = np.zeros(len(x))
    for row in range(len(x)):
        classes_of_row = target[row][is_target[row]]
        chosen[row, classes_of_row] = 1
        others = x[row][chosen[row] == 0]
        difference = 1 - x[row, classes_of_row][:, None] + others[None, :]
        losses[row] = np.maximum(difference, 0).sum() / x.shape[1]
    shaped = np.ndim(a["self"]) > 1
    chosen = chosen if shaped else chosen.reshape(np.shape(a["target"]))
    return _reduce(losses if shaped else losses[0], a), chosen


def multilabel_margin(a: Args) -> Any:
    return multilabel_margin_forward(a)[0]


# Classes.


def _class_loss(scores: Array, a: Args, smoothing: float = 0.0) -> tuple[Any, Any]:
    """Return the loss and the sum of the weights."""
    last = np.moveaxis(scores, 1 if scores.ndim > 1 else 0, -1)
    shape, classes = last.shape[:-1], last.shape[-1]
    flat, target = last.reshape(-1, classes), np.asarray(a["target"]).reshape(-1)
    weight = np.ones(classes) if a["weight"] is None else as_float(a["weight"])
    counts = target != a["ignore_index"]
    chosen = np.where(counts, target, 0)
    if chosen.size and not ((chosen >= 0) & (chosen < classes)).all():
        raise UnsupportedUseError("a target is not a class")
    factors = np.where(counts, weight[chosen], 0.0)
    rows = np.arange(len(flat))
    losses = np.where(counts, -weight[chosen] * flat[rows, chosen], 0.0)
    if smoothing:
        even = np.where(counts, -(flat * weight).sum(axis=1), 0.0)
        losses = (1 - smoothing) * losses + smoothing / classes * even
    if a["reduction"] == _NONE:
        return losses.reshape(shape), np.zeros(())
    total = losses.sum()
    weights = factors.sum()
    return np.asarray(total / weights if a["reduction"] == _MEAN else total), np.asarray(weights)


def nll_loss_forward(a: Args) -> Any:
    return _class_loss(as_float(a["self"]), a)


def nll_loss(a: Args) -> Any:
    return nll_loss_forward(a)[0]


def cross_entropy(a: Args) -> Any:
    x = as_float(a["self"])
    axis = 1 if x.ndim > 1 else 0
    scores, smoothing = log_softmax({"self": x, "dim": axis}), a["label_smoothing"]
    if not np.issubdtype(a["target"].dtype, np.floating):
        return _class_loss(scores, a, smoothing)[0]
    classes = x.shape[axis]
    shares = a["target"] * (1 - smoothing) + smoothing / classes
    if a["weight"] is not None:
        shape = [1] * x.ndim
        shape[axis] = classes
        shares = shares * as_float(a["weight"]).reshape(shape)
    return _reduce(-(scores * shares).sum(axis=axis), a)


def linear_cross_entropy(a: Args) -> Any:
    """Return the loss of a linear layer's scores, per row or reduced."""
    scores = as_float(a["input"]) @ as_float(a["linear_weight"]).T
    if a["linear_bias"] is not None:
        scores = scores + a["linear_bias"]
    reduction = {"none": _NONE, "mean": _MEAN, "sum": _SUM}[a.get("reduction", "none")]
    arguments = {"label_smoothing": 0.0, **a}
    return cross_entropy({**arguments, "self": scores, "reduction": reduction})


def linear_cross_entropy_with_gradients(a: Args) -> tuple[Any, ...]:
    """As ``linear_cross_entropy``, for uses that request no gradients along with the loss."""
    if any(a[f"compute_{name}_grad"] for name in ("input", "linear_weight", "linear_bias")):
        raise UnsupportedUseError(
            "a loss that computes its gradients in the forward pass is not supported"
        )
    return linear_cross_entropy(a), np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0)


# Distances.


def _norm(x: Array, p: float, axis: Any, keepdims: bool = False) -> Array:
    return vector_norm({"self": x, "ord": p, "dim": axis, "keepdim": keepdims})


def cdist(a: Args) -> Array:
    first, second = as_float(a["x1"]), as_float(a["x2"])
    p = a.get("p", 2.0)
    lead = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    result = np.empty((*lead, first.shape[-2], second.shape[-2]))
    for row in range(first.shape[-2]):  # all differences at once could be many
        result[..., row, :] = _norm(first[..., row, None, :] - second, p, -1)
    return result


def pdist(a: Args) -> Array:
    x = as_float(a["self"])
    i, j = np.triu_indices(x.shape[0], 1)
    return _norm(x[i] - x[j], a["p"], -1)


def dist(a: Args) -> Any:
    return np.asarray(_norm(as_float(a["self"]) - a["other"], a["p"], None))


def pairwise_distance(a: Args) -> Any:
    difference = as_float(_minus(a["x1"], a["x2"])) + a["eps"]
    return _norm(difference, a["p"], -1, a["keepdim"])


def cosine_similarity(a: Args) -> Any:
    x, y = np.broadcast_arrays(as_float(a["x1"]), as_float(a["x2"]))
    dim, eps = a["dim"] if x.ndim else None, a["eps"]
    lengths = [np.maximum(_norm(vectors, 2, dim, True), eps) for vectors in (x, y)]
    return np.asarray((x / lengths[0] * (y / lengths[1])).sum(axis=dim))


def cosine_embedding(a: Args) -> Any:
    x, y = np.broadcast_arrays(as_float(a["input1"]), as_float(a["input2"]))
    axis = np.ndim(a["target"])
    lengths = [(vectors * vectors).sum(axis=axis) + 1e-12 for vectors in (x, y)]
    cosine = (x * y).sum(axis=axis) / np.sqrt(lengths[0] * lengths[1])
    losses = np.where(a["target"] == 1, 1 - cosine, 0.0)
    losses = losses + np.where(a["target"] == -1, np.maximum(cosine - a["margin"], 0), 0.0)
    return _reduce(losses, a)


def triplet_margin(a: Args) -> Any:
    anchor, near, far = (a[name] for name in ("anchor", "positive", "negative"))

    def distance(x: Array, y: Array) -> Any:
        return _norm(as_float(_minus(x, y)) + a["eps"], a["p"], -1)

    away = distance(anchor, far)
    if a["swap"]:
        away = np.minimum(away, distance(near, far))
    return _reduce(np.maximum(a["margin"] + distance(anchor, near) - away, 0), a)


def renorm(a: Args) -> Any:
    x = as_float(a["self"])
    over = tuple(d for d in range(x.ndim) if d != a["dim"] % x.ndim)
    lengths = _norm(x, a["p"], over, True)
    return x * np.where(lengths > a["maxnorm"], a["maxnorm"] / (lengths + 1e-7), 1.0)


def ctc(a: Args) -> Any:
    """Connectionist temporal classification (Graves et al., 2006): minus the logarithm of the sum
    over all alignments. The mean divides each loss by its target's length first."""
    losses = _alignments(a)
    if a["reduction"] == _MEAN:
        lengths = np.maximum(np.asarray(a["target_lengths"], np.float64).reshape(-1), 1)
        return np.asarray((losses / lengths).mean())
    single = np.ndim(a["log_probs"]) == 2
    return _reduce(losses[0] if single else losses, a)


def _alignments(a: Args) -> Array:
    scores = as_float(a["log_probs"])
    scores = scores[:, None] if scores.ndim == 2 else scores
    targets, blank = np.asarray(a["targets"]), a["blank"]
    steps = np.asarray(a["input_lengths"]).reshape(-1)
    lengths = np.asarray(a["target_lengths"]).reshape(-1)
    starts = np.cumsum(lengths) - lengths
    losses = np.zeros(scores.shape[1])
    for n in range(scores.shape[1]):
        length = int(lengths[n])
        start = starts[n]
        labels = targets[n, :length] if targets.ndim == 2 else targets[start : start + length]
        losses[n] = -_alignment(scores[: int(steps[n]), n], labels, blank)
    return np.where(np.isinf(losses), 0.0, losses) if a["zero_infinity"] else losses


def _alignment(scores: Array, target: Array, blank: int) -> float:
    """The logarithm of the sum over alignments of one sequence: states are the target's labels
    with a blank before, between and after them."""
    states = np.full(2 * len(target) + 1, blank)
    states[1::2] = target
    skips = np.zeros(len(states), bool)
    skips[2:] = (states[2:] != blank) & (states[2:] != states[:-2])
    if not len(scores):
        return 0.0 if not len(target) else -np.inf
    alpha = np.full(len(states), -np.inf)
    alpha[:2] = scores[0, states[:2]]
    for row in scores[1:]:
        previous, skipped = np.full_like(alpha, -np.inf), np.full_like(alpha, -np.inf)
        previous[1:], skipped[2:] = alpha[:-1], alpha[:-2]
        alpha = (
            np.logaddexp(np.logaddexp(alpha, previous), np.where(skips, skipped, -np.inf))
            + row[states]
        )
    return float(np.logaddexp.reduce(alpha[-2:]))
