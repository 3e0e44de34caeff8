"""The list of supported ops."""
