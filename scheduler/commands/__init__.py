"""The engine's command line: a command a file, each with ``add_arguments`` and ``run``."""
