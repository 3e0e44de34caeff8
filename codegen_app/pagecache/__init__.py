"""Rendered pages, kept as long as what they show has not changed (ADR 0014)."""
