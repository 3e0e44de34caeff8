"""The scalar unit: its instructions as functions of Python integers, exact at any width."""
