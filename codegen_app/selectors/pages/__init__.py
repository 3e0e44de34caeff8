"""The data of each page as frozen dataclasses, which are also its ``.json`` view.

Each selector makes a fixed number of queries, whatever the number of rows (tests check this).
"""
