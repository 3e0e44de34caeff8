"""The WSGI entry point."""

from __future__ import annotations

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.utils.module_loading import import_string

from codegen_app.platform.config import serving
from codegen_app.platform.config.env import exit_with_one_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "codegen_app.platform.config.settings")
with exit_with_one_line():
    serving.check(settings)
serving.limit_queries()
application = get_wsgi_application()
import_string(settings.PRELOAD)()
