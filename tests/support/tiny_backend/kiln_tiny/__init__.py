"""A backend of its own folder: plain C for this machine, pointwise nodes only."""
