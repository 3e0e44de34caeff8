"""The float64 reference of every op, in NumPy, one family per file, independent of lowering.

``reference/`` runs them over a graph.
"""
