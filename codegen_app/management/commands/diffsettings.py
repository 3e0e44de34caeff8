"""``manage.py diffsettings``: Django's, without the secrets."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.commands import diffsettings

from codegen_app.platform.config.redaction import SecretsFilter


class Command(diffsettings.Command):
    """Prints how the settings differ from Django's own; keys and passwords as asterisks."""

    def output_hash(self, user_settings: Any, default_settings: Any, **options: Any) -> list[str]:
        """Lines of the form ``KEY = value``."""
        return super().output_hash(_cleansed(user_settings), default_settings, **options)

    def output_unified(
        self, user_settings: Any, default_settings: Any, **options: Any
    ) -> list[str]:
        """Lines with a plus or a minus before them."""
        return super().output_unified(_cleansed(user_settings), default_settings, **options)


def _cleansed(settings_text: dict[str, str]) -> dict[str, str]:
    secrets = SecretsFilter()
    return {
        key: repr(secrets.cleanse_setting(key, getattr(settings, key))) for key in settings_text
    }
