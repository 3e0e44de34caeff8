"""Tracking: series, changes, their causes, alerts, notifications, the results API."""
