"""A cache of rendered pages, valid while their data have not changed (ADR 0014)."""
