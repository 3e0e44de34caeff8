"""Telling people outside of alerts: what is due to whom is rows (``outbox``)."""
