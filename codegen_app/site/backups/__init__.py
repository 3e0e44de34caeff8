"""Backups: a folder with the database's dump, the artifacts, and a manifest.

``backup.json`` is written last: a folder without it holds no complete backup.
"""
