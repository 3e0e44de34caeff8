"""gunicorn's log as JSON: its own lines, and one per request if the access log is enabled."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from gunicorn.glogging import Logger

from codegen_app.platform.config.context import REQUEST_ID
from codegen_app.platform.config.logs import FIELDS, JsonFormatter


class JsonLogger(Logger):  # type: ignore[misc]
    """gunicorn's logger with a JSON object per line. Queries of URLs are left out: they hold keys
    of pictures and tickets of uploads."""

    def setup(self, cfg: Any) -> None:
        """Set up the log; gunicorn calls it at its start, and each time it reads its settings
        again."""
        super().setup(cfg)
        for handler in (*self.error_log.handlers, *self.access_log.handlers):
            handler.setFormatter(JsonFormatter())

    def access(
        self, resp: Any, _req: Any, environ: Mapping[str, Any], request_time: timedelta
    ) -> None:
        """Log one request."""
        method, path = environ.get("REQUEST_METHOD", ""), environ.get("PATH_INFO", "")
        status = str(resp.status).partition(" ")[0]
        fields = {
            "request_id": environ.get(REQUEST_ID),
            "method": method,
            "path": path,
            "status": int(status) if status.isdigit() else None,
            "bytes": int(resp.sent) if str(resp.sent).isdigit() else None,
            "duration_ms": round(request_time.total_seconds() * 1000, 1),
            "remote_address": environ.get("REMOTE_ADDR") or None,
            "forwarded_for": environ.get("HTTP_X_FORWARDED_FOR"),
            "user_agent": environ.get("HTTP_USER_AGENT"),
        }
        fields = {name: value for name, value in fields.items() if value is not None}
        self.access_log.info("%s %s %s", method, path, status, extra={FIELDS: fields})
