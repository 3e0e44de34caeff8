"""``make demo``: everything on one machine, started, watched and stopped by one process."""
