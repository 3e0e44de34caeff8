"""Reports of content that browsers blocked because of the content security policy, as rate-limited
log lines."""

from __future__ import annotations

import json
import logging
import time
from threading import Lock

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

MAX_BYTES = 8192
MAX_PER_MINUTE = 10  # per process
_NAMES = {  # field names of the two report formats
    "document": ("document-uri", "documentURL"),
    "directive": ("effective-directive", "violated-directive", "effectiveDirective"),
    "blocked": ("blocked-uri", "blockedURL"),
    "source": ("source-file", "sourceFile"),
    "line": ("line-number", "lineNumber"),
}
log = logging.getLogger(__name__)


class _Rate:
    """A limit of reports per minute."""

    def __init__(self) -> None:
        self._lock, self._minute, self._count = Lock(), 0, 0

    def allows(self) -> bool:
        with self._lock:
            minute = int(time.monotonic() // 60)
            if minute != self._minute:
                self._minute, self._count = minute, 0
            self._count += 1
            return self._count <= MAX_PER_MINUTE


_rate = _Rate()


@csrf_exempt
@login_not_required
@require_POST
def csp_reports(request: HttpRequest) -> HttpResponse:
    """Log a report. Always returns 204, or 413: the sender learns nothing."""
    try:
        size = int(request.headers.get("Content-Length") or 0)
    except ValueError:
        size = MAX_BYTES + 1
    if size > MAX_BYTES:
        return HttpResponse(status=413)
    if _rate.allows():
        log.warning("the browser blocked: %s", _summary(request.read(MAX_BYTES)))
    return HttpResponse(status=204)


def _summary(body: bytes) -> str:
    try:
        report = json.loads(body)
    except (ValueError, RecursionError):
        return "a report that cannot be read"
    if isinstance(report, list):  # the Reporting API sends several at once
        report = report[0] if report else None
    for inner in ("csp-report", "body"):
        if isinstance(report, dict) and isinstance(report.get(inner), dict):
            report = report[inner]
    if not isinstance(report, dict):
        return "a report that cannot be read"
    values = {
        field: next((report[name] for name in names if name in report), "")
        for field, names in _NAMES.items()
    }
    # One line, whatever they contain.
    return ", ".join(f"{field} {str(value)[:200]!a}" for field, value in values.items())
