"""Kernels in CuteDSL, Python that NVIDIA's compiler makes machine code of."""
