"""Computes a graph, or one of its nodes, in float64 with the reference of each op.

``evaluate`` computes one node, ``run`` a whole graph, ``random_inputs`` generates inputs.
"""

from scheduler.ir.encoding import round_to_dtype
from scheduler.reference.evaluate import evaluate, read_sizes, run, symbolic_values
from scheduler.reference.inputs import random_inputs

__all__ = ["evaluate", "random_inputs", "read_sizes", "round_to_dtype", "run", "symbolic_values"]
