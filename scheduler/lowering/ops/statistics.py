"""Rows of counts, extrema, norms and distances."""

from __future__ import annotations

from scheduler.ir.ops import NoKernel, op
from scheduler.ir.reference import losses as ref_losses
from scheduler.ir.reference import reductions as ref_reductions
from scheduler.ir.reference import scans as ref_scans
from scheduler.ir.reference import statistics as ref
from scheduler.lowering import distances, gradient, reductions
from scheduler.lowering import statistics as rules

EDGES = NoKernel("no kernels are generated for histograms with their edges")

ROWS = (
    op("aten.aminmax", "self, *, dim=None, keepdim=False", rules.aminmax, ref.aminmax),
    op(
        "aten.count_nonzero",
        "self, dim=None; dim_IntList: self, dim",
        rules.count_nonzero,
        ref.count_nonzero,
    ),
    op(
        "aten.histogram",
        "bin_ct: self, bins=100, *, range=None, weight=None, density=False; "
        "bins_tensor: self, bins, *, weight=None, density=False",
        EDGES,
        ref.histogram,
    ),
    op(
        "aten.histogramdd",
        "default int_bins TensorList_bins: self, bins, range=None, weight=None, density=False",
        EDGES,
        ref.histogramdd,
    ),
    op(
        "aten._histogramdd_bin_edges",
        "self, bins, *, range=None, weight=None, density=False",
        EDGES,
        ref.histogramdd_edges,
    ),
    op(
        "aten._histogramdd_from_bin_cts",
        "self, bins, *, range=None, weight=None, density=False",
        EDGES,
        ref.histogramdd_counts,
    ),
    op(
        "aten._histogramdd_from_bin_tensors",
        "self, bins, *, weight=None, density=False",
        EDGES,
        ref.histogramdd_counts,
    ),
    op(
        "aten.gradient",
        "scalarint: self, *, spacing=None, dim=None, edge_order=1; "
        "array: self, *, dim, edge_order=1; "
        "scalarrayint tensorarrayint: self, *, spacing, dim=None, edge_order=1; "
        "scalararray scalarrayarray tensorarray: self, *, spacing, dim, edge_order=1",
        gradient.gradient,
        ref_scans.gradient,
    ),
    op(
        "aten.norm",
        "Scalar: self, p=2; ScalarOpt_dim: self, p, dim, keepdim=False; "
        "ScalarOpt_dim_dtype: self, p, dim, keepdim, *, dtype; ScalarOpt_dtype: self, p, *, dtype",
        reductions.norm,
        ref_reductions.norm,
    ),
    op(
        "aten.linalg_vector_norm",
        "self, ord=2, dim=None, keepdim=False, *, dtype=None",
        reductions.norm,
        ref_reductions.norm,
    ),
    op(
        "aten.frobenius_norm",
        "dim: self, dim, keepdim=False",
        reductions.norm,
        ref_reductions.frobenius_norm,
    ),
    op("aten.cdist", "x1, x2, p=2.0, compute_mode=None", distances.cdist, ref_losses.cdist),
    op("aten._cdist_forward", "x1, x2, p, compute_mode", distances.cdist, ref_losses.cdist),
    op("aten._euclidean_dist", "x1, x2", distances.euclidean_dist, ref_losses.cdist),
    op("aten.pdist", "self, p=2.0", distances.pdist, ref_losses.pdist),
    op("aten._pdist_forward", "self, p=2.0", distances.pdist, ref_losses.pdist),
)
