"""Measuring the sides of a change again, here or by the senders of the series."""
