"""The Django application."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig
from django.db.models.signals import post_migrate, pre_migrate


class CodegenAppConfig(AppConfig):
    """Kiln's models, services and pages."""

    name = "codegen_app"
    verbose_name = "Kiln"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Import the modules whose decorators connect receivers of signals and register checks.
        They need the applications' models, which are loaded only now."""
        import codegen_app.accounts.receivers  # noqa: PLC0415
        import codegen_app.accounts.sessions  # noqa: PLC0415
        import codegen_app.site.checks  # noqa: PLC0415
        import codegen_app.tracking.receivers  # noqa: PLC0415
        import codegen_app.tuning.receivers  # noqa: F401, PLC0415
        from codegen_app.tracking.sql import views  # noqa: PLC0415
        from codegen_app.web.pagecache import triggers  # noqa: PLC0415

        pre_migrate.connect(views.drop_views, sender=self)
        post_migrate.connect(triggers.create_triggers, sender=self)
        post_migrate.connect(views.create_views, sender=self)


class KilnAdminConfig(SimpleAdminConfig):
    """Django's admin with our site. Its pages are imported with the URLs: workers need neither."""

    default_site = "codegen_app.admin_site.KilnAdminSite"
