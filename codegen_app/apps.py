"""The Django application."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig
from django.db.models.signals import post_migrate


class CodegenAppConfig(AppConfig):
    """Kiln's rows, services and pages."""

    name = "codegen_app"
    verbose_name = "Kiln"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Listen to what the audit log notes, and to logins, whose session begins then; count
        changes of what pages show."""
        # These need the applications' rows, which are there only now.
        from codegen_app.access import events, sessions  # noqa: F401, PLC0415
        from codegen_app.config import checks  # noqa: F401, PLC0415
        from codegen_app.pagecache import triggers  # noqa: PLC0415

        events.connect()
        post_migrate.connect(triggers.create_triggers, sender=self)


class KilnAdminConfig(SimpleAdminConfig):
    """Django's admin, with our site in place of its own. Its pages are imported with the addresses:
    workers need neither."""

    default_site = "codegen_app.admin_site.KilnAdminSite"
