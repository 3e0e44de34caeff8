"""Rows of losses, and of distances and similarities of vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from scheduler.ir.ops import NoKernel, Op, op
from scheduler.ir.reference import losses as ref
from scheduler.ir.reference.constraints import class_targets
from scheduler.ir.reference.rule import Rule
from scheduler.ir.values import Value
from scheduler.lowering import cross_entropy as entropy
from scheduler.lowering import distances
from scheduler.lowering import losses as rules
from scheduler.lowering.pointwise import formula_rule

CLASSES = "self, target, weight=None, reduction=1, ignore_index=-100"
LISTS = NoKernel("no kernels are generated for targets that are lists with data-dependent ends")
_class_op = partial(op, requires=class_targets)


def _loss(name: str, parameters: str, formula: Callable[..., Value], reference: Rule) -> Op:
    rule = formula_rule(formula, parameters, rules.elementwise_loss)
    return op(f"aten.{name}", parameters, rule, reference)


ROWS = (
    op(
        "torch_nn._linear_cross_entropy_batch_chunked",
        "default: input, linear_weight, target, linear_bias, weight, reduction, ignore_index, "
        "label_smoothing, batch_chunk_size, acc_policy, acc_dtype, allow_retain_graph, "
        "compute_input_grad, compute_linear_weight_grad, compute_linear_bias_grad",
        entropy.linear_cross_entropy_with_gradients,
        ref.linear_cross_entropy_with_gradients,
    ),
    op(
        "torch_nn._linear_cross_entropy_batch_chunked_no_reduction",
        "default: input, linear_weight, target, linear_bias, weight, ignore_index, "
        "batch_chunk_size, acc_policy, acc_dtype",
        entropy.linear_cross_entropy,
        ref.linear_cross_entropy,
    ),
    _class_op(
        "aten.cross_entropy_loss",
        f"{CLASSES}, label_smoothing=0.0",
        entropy.cross_entropy,
        ref.cross_entropy,
    ),
    _class_op("aten.nll_loss", CLASSES, entropy.nll_loss, ref.nll_loss),
    _class_op("aten.nll_loss2d", CLASSES, entropy.nll_loss, ref.nll_loss),
    _class_op("aten.nll_loss_nd", CLASSES, entropy.nll_loss, ref.nll_loss),
    _class_op(
        "aten.nll_loss_forward",
        "self, target, weight, reduction, ignore_index",
        entropy.nll_loss_forward,
        ref.nll_loss_forward,
    ),
    _class_op(
        "aten.nll_loss2d_forward",
        "self, target, weight, reduction, ignore_index",
        entropy.nll_loss_forward,
        ref.nll_loss_forward,
    ),
    _loss("mse_loss", "self, target, reduction=1", rules.squared_error, ref.mse),
    op("aten.l1_loss", "self, target, reduction=1", rules.l1, ref.l1),
    _loss("soft_margin_loss", "self, target, reduction=1", rules.soft_margin, ref.soft_margin),
    _loss("smooth_l1_loss", "self, target, reduction=1, beta=1.0", rules.smooth_l1, ref.smooth_l1),
    _loss("huber_loss", "self, target, reduction=1, delta=1.0", rules.huber, ref.huber),
    _loss(
        "binary_cross_entropy",
        "self, target, weight=None, reduction=1",
        rules.binary_cross_entropy,
        ref.binary_cross_entropy,
    ),
    _loss(
        "binary_cross_entropy_with_logits",
        "self, target, weight=None, pos_weight=None, reduction=1",
        rules.binary_cross_entropy_with_logits,
        ref.with_logits,
    ),
    _loss("kl_div", "self, target, reduction=1, *, log_target=False", rules.kl_div, ref.kl_div),
    _loss(
        "poisson_nll_loss",
        "input, target, log_input, full, eps, reduction",
        rules.poisson_nll,
        ref.poisson_nll,
    ),
    _loss(
        "hinge_embedding_loss",
        "self, target, margin=1.0, reduction=1",
        rules.hinge_embedding,
        ref.hinge_embedding,
    ),
    op(
        "aten.margin_ranking_loss",
        "input1, input2, target, margin=0.0, reduction=1",
        rules.margin_ranking,
        ref.margin_ranking,
    ),
    _class_op(
        "aten.multi_margin_loss",
        "self, target, p=1, margin=1, weight=None, reduction=1",
        rules.multi_margin,
        ref.multi_margin,
    ),
    op("aten.multilabel_margin_loss", "self, target, reduction=1", LISTS, ref.multilabel_margin),
    op(
        "aten.multilabel_margin_loss_forward",
        "self, target, reduction",
        LISTS,
        ref.multilabel_margin_forward,
    ),
    op(
        "aten.ctc_loss",
        "IntList Tensor: log_probs, targets, input_lengths, target_lengths, blank=0, "
        "reduction=1, zero_infinity=False",
        NoKernel("no kernels are generated for sums over alignments"),
        ref.ctc,
    ),
    op(
        "aten.cosine_embedding_loss",
        "input1, input2, target, margin=0.0, reduction=1",
        distances.cosine_embedding,
        ref.cosine_embedding,
    ),
    op(
        "aten.triplet_margin_loss",
        "anchor, positive, negative, margin=1.0, p=2.0, eps=1e-06, swap=False, reduction=1",
        distances.triplet_margin,
        ref.triplet_margin,
    ),
    op("aten.dist", "self, other, p=2", distances.dist, ref.dist),
    op(
        "aten.pairwise_distance",
        "x1, x2, p=2.0, eps=1e-06, keepdim=False",
        distances.pairwise_distance,
        ref.pairwise_distance,
    ),
    op(
        "aten.cosine_similarity",
        "x1, x2, dim=1, eps=1e-08",
        distances.cosine_similarity,
        ref.cosine_similarity,
    ),
    op("aten.renorm", "self, p, dim, maxnorm", distances.renorm, ref.renorm),
)
