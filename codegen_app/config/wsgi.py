"""The web server's way in."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "codegen_app.config.settings")
application = get_wsgi_application()
