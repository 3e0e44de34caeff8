"""The file name of a kernel's CuteDSL source, in a bundle and in the compiler's folder."""

SOURCE_FILE = "source.py"
ALTERNATIVE = "HIP C++"
"""What makes kernels for the same targets if CuteDSL's templates cannot."""
