"""Backups: a folder with the database's dump, the artifacts, and what both are of.

``backup.json`` is written last: a folder without it holds no whole backup.
"""
