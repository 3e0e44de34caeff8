"""Recorded results as one JSON file: the measurements, where they were made, the kernels, and the
decisions.

``schema.json`` in this folder describes it; ``docs/results.md`` says how such a file is made.
"""
