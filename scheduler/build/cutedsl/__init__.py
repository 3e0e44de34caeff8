"""Building CuteDSL sources for NVIDIA GPUs (ADR 0017)."""
