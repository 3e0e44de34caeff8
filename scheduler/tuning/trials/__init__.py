"""Analyses many trials of one problem: which parameters matter, and how each value performs."""
