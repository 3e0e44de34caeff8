"""What each page shows, as frozen dataclasses; they are its ``.json`` twin as they stand.

Each selector makes a fixed number of queries, whatever the number of rows (tests hold it).
"""
