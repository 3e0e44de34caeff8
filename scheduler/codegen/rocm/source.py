"""What a kernel's HIP source is called, in a bundle and beside the compiler."""

SOURCE_FILE = "source.hip"
