"""What a kernel's CuteDSL source is called, in a bundle and beside the compiler."""

SOURCE_FILE = "source.py"
