"""The float64 reference of every op, in NumPy, one family a file.

``evaluate`` computes one node, ``run`` a whole graph, ``random_inputs`` makes values to run it on.
"""

from scheduler.ir.reference.evaluate import evaluate, has_rule, run, symbolic_values
from scheduler.ir.reference.inputs import random_inputs
from scheduler.ir.reference.rounding import rounded

__all__ = ["evaluate", "has_rule", "random_inputs", "rounded", "run", "symbolic_values"]
