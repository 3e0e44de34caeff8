"""Kernels in CuteDSL, Python that NVIDIA's compiler compiles to machine code."""
