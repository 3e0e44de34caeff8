"""Finders of what Kiln tracks and where it measures: series, alerts, revisions, devices, people.

A finder of rows is one query limited to the requested number of rows (no sort without an index).
"""

from __future__ import annotations

import re
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Q
from django.urls import reverse

from codegen_app.site.search.model import Hit, has_words
from codegen_app.tracking.compare_revisions.sides import comparison_url, revision_text
from codegen_app.tracking.models import Alert, Change, Revision, Series
from codegen_app.tuning.models import Environment

_ALERT = re.compile(r"(?:alert\s*)?#?(\d{1,18})", re.IGNORECASE)


def series(query: str, limit: int) -> list[Hit]:
    """Find series by problem."""
    rows = Series.objects.filter(has_words(query, "problem__icontains")).order_by("-pk")
    return [
        Hit(
            "series",
            row.problem,
            reverse("series", args=[row.pk]),
            f"{row.metric}, {row.device_name}",
        )
        for row in rows.only("problem", "metric", "device_name")[:limit]
    ]


def alerts(query: str, limit: int) -> list[Hit]:
    """Find alerts by number (``alert 12``), machine, revision, or a problem of their series."""
    numbered = _ALERT.fullmatch(query)
    changes = Change.objects.filter(series__problem__icontains=query, alert__isnull=False)
    matching = (
        Q(machine__icontains=query)
        | Q(revision__name__startswith=query)
        | Q(series__problem__icontains=query)
        | Q(pk__in=changes.values("alert"))
    )
    if numbered:
        matching = Q(pk=int(numbered[1]))
    rows = Alert.objects.filter(matching).select_related("revision", "series").order_by("-pk")
    return [
        Hit("alert", f"alert {row.pk}", row.get_absolute_url(), f"{row}, {row.get_state_display()}")
        for row in rows[:limit]
    ]


def revisions(query: str, limit: int) -> list[Hit]:
    """Find revisions by the beginning of the name, or by words of the subject or the author; each
    links to its comparison with another."""
    matching = Q(name__startswith=query) | Q(subject__icontains=query) | Q(author__icontains=query)
    rows = Revision.objects.filter(matching).order_by("-pk")
    return [
        Hit(
            "revision",
            str(row),
            comparison_url("", revision_text(row.name)),
            row.subject or row.branch or "compare this revision",
        )
        for row in rows.only("name", "subject", "branch")[:limit]
    ]


def devices(query: str, limit: int) -> list[Hit]:
    """Find devices that something was measured on, by name, driver or compiler, each name once."""
    matching = (
        Q(device_name__icontains=query)
        | Q(driver__icontains=query)
        | Q(compiler__icontains=query)
        | Q(device__iexact=query)
    )
    rows = Environment.objects.filter(matching).order_by().values_list("device_name", "target")
    return [
        Hit(
            "device",
            name,
            f"{reverse('series_list')}?{urlencode({'device': name})}",
            f"{target}: series measured on it",
        )
        for name, target in rows.distinct()[:limit]
    ]


def people(query: str, limit: int) -> list[Hit]:
    """Find accounts by name; each links to the alerts assigned to it."""
    rows = User.objects.filter(is_active=True, username__icontains=query).order_by("username")
    return [
        Hit(
            "person",
            name,
            f"{reverse('alerts')}?{urlencode({'assignee': name, 'state': 'all'})}",
            "alerts assigned to this user",
        )
        for name in rows.values_list("username", flat=True)[:limit]
    ]
