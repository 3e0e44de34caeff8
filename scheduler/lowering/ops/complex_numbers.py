"""Rows of complex numbers: parts, conjugates, and construction from parts."""

from __future__ import annotations

from functools import partial

from scheduler.ir.ops import Elements, op
from scheduler.ir.reference import complex_numbers as ref
from scheduler.ir.reference import pointwise as ref_pointwise
from scheduler.ir.reference import special as ref_special
from scheduler.ir.reference import views as ref_views
from scheduler.lowering import complex_numbers as rules
from scheduler.lowering import views

_view_op = partial(op, elements=Elements.VIEWED)

ROWS = (
    op("aten.abs", "self", rules.absolute, ref_pointwise.unary("abs")),
    op("aten.angle", "self", rules.angle, ref_special.angle),
    op("aten.sgn", "self", rules.sgn, ref.sgn),
    _view_op("aten.real", "self", rules.part("real"), ref.real),
    _view_op("aten.imag", "self", rules.part("imag"), ref.imag),
    _view_op("aten.view_as_real", "self", rules.view_as_real, ref.view_as_real),
    _view_op("aten.view_as_complex", "self", rules.view_as_complex, ref.view_as_complex),
    _view_op("aten._conj", "self", rules.conj, ref.conj),
    _view_op("aten.conj", "self", rules.conj, ref.conj),
    _view_op("aten.mH", "self", rules.adjoint, ref.adjoint),
    _view_op("aten.adjoint", "self", rules.adjoint, ref.adjoint),
    _view_op("aten.matrix_H", "self", rules.adjoint, ref.adjoint),
    op("aten._conj_physical", "self", rules.conj, ref.conj),
    op("aten.conj_physical", "self", rules.conj, ref.conj),
    _view_op("aten._neg_view", "self", rules.neg_view, ref.neg),
    _view_op("aten.resolve_conj", "self", views.identity, ref_views.identity),
    _view_op("aten.resolve_neg", "self", views.identity, ref_views.identity),
    op("aten.complex", "real, imag", rules.complex_op, ref.complex_op),
    op("aten.polar", "abs, angle", rules.polar, ref.polar),
    op("aten.vdot", "self, other", rules.vdot, ref.vdot),
)
