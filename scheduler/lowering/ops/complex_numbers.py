"""Rows of complex numbers: parts, conjugates, and construction from parts."""

from __future__ import annotations

from scheduler.ir.ops import Elements, op
from scheduler.ir.reference import complex_numbers as ref
from scheduler.ir.reference import pointwise as ref_pointwise
from scheduler.ir.reference import special as ref_special
from scheduler.ir.reference import views as ref_views
from scheduler.lowering import complex_numbers as rules
from scheduler.lowering import views

ROWS = (
    op("aten.abs", "self", rules.absolute, ref_pointwise.unary("abs")),
    op("aten.angle", "self", rules.angle, ref_special.angle),
    op("aten.sgn", "self", rules.sgn, ref.sgn),
    op("aten.real", "self", rules.part("real"), ref.real, Elements.VIEWED),
    op("aten.imag", "self", rules.part("imag"), ref.imag, Elements.VIEWED),
    op("aten.view_as_real", "self", rules.view_as_real, ref.view_as_real, Elements.VIEWED),
    op("aten.view_as_complex", "self", rules.view_as_complex, ref.view_as_complex, Elements.VIEWED),
    op("aten._conj", "self", rules.conj, ref.conj, Elements.VIEWED),
    op("aten.conj", "self", rules.conj, ref.conj, Elements.VIEWED),
    op("aten.mH", "self", rules.adjoint, ref.adjoint, Elements.VIEWED),
    op("aten.adjoint", "self", rules.adjoint, ref.adjoint, Elements.VIEWED),
    op("aten.matrix_H", "self", rules.adjoint, ref.adjoint, Elements.VIEWED),
    op("aten._conj_physical", "self", rules.conj, ref.conj),
    op("aten.conj_physical", "self", rules.conj, ref.conj),
    op("aten._neg_view", "self", rules.neg_view, ref.neg, Elements.VIEWED),
    op("aten.resolve_conj", "self", views.identity, ref_views.identity, Elements.VIEWED),
    op("aten.resolve_neg", "self", views.identity, ref_views.identity, Elements.VIEWED),
    op("aten.complex", "real, imag", rules.complex_op, ref.complex_op),
    op("aten.polar", "abs, angle", rules.polar, ref.polar),
    op("aten.vdot", "self, other", rules.vdot, ref.vdot),
)
