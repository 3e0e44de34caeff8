"""A launch of an external kernel, described in JSON: what the model needs besides the code."""
