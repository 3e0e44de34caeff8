"""Attacks that take long: each a command that prints what it counted and fails on any loss."""
