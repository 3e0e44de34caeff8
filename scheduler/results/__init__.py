"""Recorded results as one JSON file: what was measured where, of which kernels, and the decision.

``schema.json`` beside this file describes it; ``docs/results.md`` says how such a file is made.
"""
