"""Converts AMD code objects without a listing to listings (ADR 0026)."""
