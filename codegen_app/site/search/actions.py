"""Actions that match the typed text, on the current page or on a named object.

Only actions that the account may do are offered; the target pages check again. Nothing is done
here: each action links to the page that does it.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlencode, urlsplit

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, PermissionsMixin
from django.db.models import Q
from django.urls import Resolver404, ResolverMatch, resolve, reverse

from codegen_app.accounts import permissions
from codegen_app.graphs.models import Graph, TemplateNode
from codegen_app.kernels.models import Build, GeneratedKernel
from codegen_app.site.search.model import Hit
from codegen_app.workers.models import State
from scheduler import targets

Account = AbstractBaseUser | AnonymousUser

_RETUNE = re.compile(r"(?:re)?tune\s+(\S.*)", re.IGNORECASE)
_COMPARE = re.compile(r"compare(?:\s+with)?(?:\s+(\S+))?", re.IGNORECASE)
# Objects that can be tuned, by URL name: the URL's parameter with the key, and the retune page's.
_TUNABLE = {
    "graph": ("pk", "graph"),
    "template_node": ("pk", "node"),
    "kernel": ("name", "kernel"),
    "tuning_run": ("pk", "run"),
}
# Pages of forms: the required permission ("" for any account), title, URL name and note.
_PAGES = (
    (permissions.IMPORT, "Import a file", "import", "a model, results, or a kernel"),
    (permissions.IMPORT, "Model an external kernel", "look", "from a file"),
    (permissions.NOTIFY, "Set up notifications", "channels", "of alerts"),
    (permissions.TOKENS, "Create an API token", "tokens", ""),
    ("", "Change my password", "password", ""),
)


def actions(query: str, at: str, account: Account, limit: int) -> list[Hit]:
    """Return at most ``limit`` actions; ``at`` is the address of the current page, "" for none."""
    try:
        place = resolve(urlsplit(at).path)
    except Resolver404:
        place = None
    hits: list[Hit] = []
    if _has_permission(account, permissions.RETUNE):
        if place is not None and place.url_name in _TUNABLE:
            key, what = _TUNABLE[place.url_name]
            retune = Hit("action", f"Retune this {what}", _retune_url(what, place.kwargs[key]))
            hits += [retune] if _matches(query, retune) else []
        hits += _retune_named(query, place, limit)
    hits += _compare_here(query, at, place)
    hits += [
        hit
        for permission, text, name, note in _PAGES
        if (_has_permission(account, permission) if permission else account.is_authenticated)
        and _matches(query, hit := Hit("action", text, reverse(name), note))
    ]
    return hits[:limit]


def _has_permission(account: Account, permission: str) -> bool:
    return isinstance(account, PermissionsMixin) and account.has_perm(permission)


def _matches(query: str, hit: Hit) -> bool:
    text = f"{hit.text} {hit.where}".lower()
    return all(word in text for word in query.lower().split())


def _retune_url(what: str, key: object) -> str:
    return f"{reverse('retune')}?{urlencode({what: key})}"


def _retune_named(query: str, place: ResolverMatch | None, limit: int) -> list[Hit]:
    """Match ``retune op17``: nodes, those of the displayed graph first, graphs and kernels (3
    queries)."""
    match = _RETUNE.fullmatch(query.strip())
    if match is None or match[1].lower().startswith("this "):
        return []
    name = match[1].strip()
    nodes = TemplateNode.objects.filter(Q(name__iexact=name) | Q(name__istartswith=name))
    graph_id = place.kwargs["pk"] if place and place.url_name == "graph" else None
    rows = list(
        nodes.filter(problem__isnull=False)
        .select_related("graph")
        .only("name", "op", "graph__name")
        .order_by("-pk")[: 10 * limit]
    )
    rows.sort(key=lambda row: (row.name.lower() != name.lower(), row.graph_id != graph_id))
    hits = [
        Hit("action", f"Retune {row.name}", _retune_url("node", row.pk), f"{row.op} of {row.graph}")
        for row in rows[:limit]
    ]
    graphs = Graph.objects.filter(name__icontains=name).order_by("-pk").only("name")[:limit]
    hits += [
        Hit("action", f"Retune {row.name}", _retune_url("graph", row.pk), "all nodes of the graph")
        for row in graphs
    ]
    kernels = GeneratedKernel.objects.filter(name__istartswith=name).only("name")[:limit]
    return hits + [
        Hit(
            "action",
            f"Retune {row.name}",
            _retune_url("kernel", row.name),
            "all nodes that use this kernel",
        )
        for row in kernels
    ]


def _compare_here(query: str, at: str, place: ResolverMatch | None) -> list[Hit]:
    """On a kernel's page: compare its displayed build with its builds for other targets (1
    query)."""
    match = _COMPARE.fullmatch(query.strip()) if query.strip() else None
    if place is None or place.url_name != "kernel" or (query.strip() and match is None):
        return []
    builds = list(
        Build.objects.filter(kernel__name=place.kwargs["name"], state=State.DONE)
        .order_by("target", "-created_at")
        .only("target", "flags")
    )
    # The default order of the page: the emulation's build comes last.
    builds.sort(key=lambda build: (bool(targets.find(build.target).emulates), build.target))
    build_id = parse_qs(urlsplit(at).query).get("build", [""])[0]
    current = next(
        (build for build in builds if str(build.pk) == build_id), next(iter(builds), None)
    )
    if current is None:
        return []
    by_target = {
        build.target: build for build in reversed(builds) if build.target != current.target
    }
    target_part = (match[1] or "").lower() if match else ""
    return [
        Hit(
            "action",
            f"Compare with {target}",
            f"{reverse('compare')}?{urlencode({'build': [current.pk, build.pk]}, doseq=True)}",
            f"this kernel, with {current.target}",
        )
        for target, build in sorted(by_target.items())
        if target_part in target
    ]
