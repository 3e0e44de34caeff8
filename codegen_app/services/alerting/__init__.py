"""Alerts: raised of changes, triaged by people; what happens to one is an event (``events``)."""
