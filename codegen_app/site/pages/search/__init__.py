"""The search, and the command palette."""
