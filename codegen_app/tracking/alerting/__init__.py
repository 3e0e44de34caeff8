"""Alerts: raised from changes, triaged by people; each step is an event (``events``)."""
