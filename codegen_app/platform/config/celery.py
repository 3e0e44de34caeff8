"""The Celery application."""

from __future__ import annotations

import os

from celery import Celery
from django.conf import settings

from codegen_app.platform.broker import transport
from codegen_app.platform.config.env import exit_with_one_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "codegen_app.platform.config.settings")
# Django's checks import all pages: they run where a site is set up, not in each worker.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")
with exit_with_one_line():
    _ = settings.VAR_DIR

transport.register()
app = Celery("kiln")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["codegen_app"])
