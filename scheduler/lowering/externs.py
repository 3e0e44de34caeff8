"""Reasons why ops, or some uses of ops, are left to the reference; used by rows and rules."""

from __future__ import annotations

from scheduler.ir.ops import NoKernel

FACTORS = NoKernel("matrix factorizations are computed by LAPACK")
SPECTRA = NoKernel("eigenvalues and singular values are computed by LAPACK")
DATA_DEPENDENT_SIZE = NoKernel("the size of its result depends on data")
MATRIX_EXPONENTIALS = NoKernel("matrix exponentials are computed on the host")
