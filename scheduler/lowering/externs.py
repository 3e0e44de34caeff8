"""Reasons why ops, or some uses of ops, are left to the reference; used by rows and rules."""

from __future__ import annotations

from scheduler.ir.ops import NoKernel

FACTORS = NoKernel("factors of matrices are left to LAPACK")
SPECTRA = NoKernel("eigenvalues and singular values are left to LAPACK")
DATA_DEPENDENT_SIZE = NoKernel("how large its result is depends on data")
MATRIX_EXPONENTIALS = NoKernel("exponentials of matrices are left to the host")
