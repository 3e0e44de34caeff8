"""The WSGI entry point."""

from __future__ import annotations

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import reverse

from codegen_app.platform.config import serving
from codegen_app.platform.config.env import exit_with_one_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "codegen_app.platform.config.settings")
with exit_with_one_line():
    serving.check(settings)
serving.limit_queries()
application = get_wsgi_application()
# Import all pages here, once for all forked processes: otherwise the first request of each process
# waits for it.
reverse("overview")
