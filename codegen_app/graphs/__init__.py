"""Graphs: importing them, their nodes, comparing them with torch."""
