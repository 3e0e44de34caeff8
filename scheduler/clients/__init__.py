"""Programs that other machines copy: one file each, of Python's standard library alone."""
