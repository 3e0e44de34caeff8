"""Tuning: runs, candidates, measurements, selections, schedules."""
