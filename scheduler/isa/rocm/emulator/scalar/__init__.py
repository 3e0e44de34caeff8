"""The scalar unit: its instructions as functions of Python's integers, exact at any width."""
