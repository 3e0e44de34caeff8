"""Notifications of alerts to the outside: due deliveries are rows (``outbox``)."""
