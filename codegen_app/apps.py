"""The Django application."""

from __future__ import annotations

from django.apps import AppConfig


class CodegenAppConfig(AppConfig):
    """Kiln's rows, services and pages."""

    name = "codegen_app"
    verbose_name = "Kiln"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Listen to what the audit log notes, and to logins, whose session begins then."""
        from codegen_app.access import events, sessions  # noqa: F401, PLC0415 - needs the rows

        events.connect()
