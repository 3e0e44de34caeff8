"""Why some of linear algebra is left to the reference: rows of ops say it, and rules of uses."""

from __future__ import annotations

from scheduler.ir.ops import NoKernel

FACTORS = NoKernel("factors of matrices are left to LAPACK")
SPECTRA = NoKernel("eigenvalues and singular values are left to LAPACK")
SERIES = NoKernel("exponentials of matrices are left to the host")
