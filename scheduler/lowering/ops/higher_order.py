"""Rows of higher-order ops, whose arguments are graphs (torch/_higher_order_ops/)."""

from __future__ import annotations

from scheduler.ir.ops import op
from scheduler.ir.reference import higher_order as ref
from scheduler.lowering import higher_order as rules

ROWS = (
    op("higher_order.cond", "pred, true_fn, false_fn, operands", rules.cond, ref.cond),
    op(
        "higher_order.while_loop",
        "cond_fn, body_fn, carried_inputs, additional_inputs=()",
        rules.while_loop,
        ref.while_loop,
    ),
    op("higher_order.scan", "combine_fn, init, xs, additional_inputs=()", rules.scan, ref.scan),
    op(
        "higher_order.associative_scan",
        "combine_fn, xs, additional_inputs=()",
        rules.associative_scan,
        ref.associative_scan,
    ),
    op("higher_order.map_impl", "f, xs, pos_args=()", rules.map_op, ref.map_op),
)
