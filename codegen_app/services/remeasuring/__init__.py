"""Measuring again what a change lies between, here or by whoever sends the series."""
