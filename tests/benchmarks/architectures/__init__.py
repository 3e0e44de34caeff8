"""Real architectures from file to kernels: ``python -m tests.benchmarks.architectures``."""
