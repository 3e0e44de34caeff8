"""torch's own OpInfo database as the judge of every op: ``python -m tests.benchmarks.opinfo``."""
