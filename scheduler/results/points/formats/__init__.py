"""Readers of other tools' result files, unmodified: pure functions, one file per tool."""
