"""The float64 reference of every op, in NumPy, one family a file. They know nothing of lowering.

``reference/`` runs them over a graph.
"""
