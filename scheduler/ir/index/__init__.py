"""Algebra of index expressions: integer expressions over sizes and loop variables."""
