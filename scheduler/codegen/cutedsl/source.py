"""What a kernel's CuteDSL source is called, in a bundle and beside the compiler."""

SOURCE_FILE = "source.py"
ALTERNATIVE = "HIP C++"
"""What makes kernels for the same targets where CuteDSL's templates do not serve."""
