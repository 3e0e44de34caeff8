"""The Django application."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig
from django.db.models.signals import post_migrate


class CodegenAppConfig(AppConfig):
    """Kiln's models, services and pages."""

    name = "codegen_app"
    verbose_name = "Kiln"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect the receivers of signals: the audit log, the start of sessions at login, the
        counting of changes for pages, and what one subject tells another."""
        # These need the applications' models, which are loaded only now.
        from codegen_app.accounts import events, sessions  # noqa: F401, PLC0415
        from codegen_app.site import checks  # noqa: F401, PLC0415
        from codegen_app.tracking import receivers as series_receivers  # noqa: PLC0415
        from codegen_app.tuning import receivers as run_receivers  # noqa: PLC0415
        from codegen_app.web.pagecache import triggers  # noqa: PLC0415

        events.connect()
        run_receivers.connect()
        series_receivers.connect()
        post_migrate.connect(triggers.create_triggers, sender=self)


class KilnAdminConfig(SimpleAdminConfig):
    """Django's admin with our site. Its pages are imported with the URLs: workers need neither."""

    default_site = "codegen_app.admin_site.KilnAdminSite"
