"""The list of alerts, and its feed."""
