"""The file name of a kernel's HIP source, in a bundle and in the compiler's folder."""

SOURCE_FILE = "source.hip"
