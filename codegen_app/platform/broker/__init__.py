"""The default broker: Celery's messages as rows of the application's own PostgreSQL (ADR 0003)."""
