"""What the web server loads once, before it forks its processes.

Otherwise the first request of each process for each page would compile its templates and import
backends and libraries: up to half a second, for which other requests wait.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import plotly.graph_objects as go
from django.conf import settings
from django.template import engines
from django.template.backends.django import DjangoTemplates
from django.utils.module_loading import import_string

from codegen_app.site.api.urls import openapi
from codegen_app.site.search import finders
from codegen_app.web.pages.glossary.query import glossary
from scheduler.targets.registry import backends, load_part

#: Imported by functions of Kiln and of libraries when they are first called.
_MODULES = (
    *("scipy.special", "scipy.linalg", "sympy.tensor.tensor", "plotly.io._json"),
    *("encodings.cp437", "encodings.unicode_escape", "scheduler.isa.bisect"),
    *("django.conf.locale.en.formats", "django.conf.locale.en_GB.formats"),
    *("django.contrib.messages.storage.fallback", "codegen_app.web.not_found"),
)
#: Django's templates of the admin; ours are all loaded.
_ADMIN_TEMPLATES = ("change_form", "change_list", "delete_confirmation", "object_history")


def preload_pages() -> None:
    """Load modules, templates and tables of pages. Does not connect to the database: a connection
    must not be shared by processes."""
    for name in (*_MODULES, settings.ROOT_URLCONF):
        import_module(name)
    for path in settings.BAR_COUNTS.values():
        import_string(path)
    for backend in backends():
        parts = (backend.targets, backend.boards, backend.listings, backend.occupancy)
        codegen = (backend.scheduling, *backend.competitors, backend.recipe, *backend.recipes)
        for reference in filter(None, (*parts, *codegen)):
            load_part(reference)
    _load_templates()
    _build_figure()
    openapi()
    glossary()
    finders.op_names()


def _load_templates() -> None:
    """Compile every template; the loader of each process then has them."""
    backend = engines["django"]
    assert isinstance(backend, DjangoTemplates)
    engine = backend.engine
    assert engine.template_context_processors  # imported when first read
    for folder in map(Path, engine.dirs):
        for file in sorted(folder.rglob("*.html")):
            engine.get_template(str(file.relative_to(folder)))
    for name in _ADMIN_TEMPLATES:
        engine.get_template(f"admin/{name}.html")


def _build_figure() -> None:
    """Build a figure with every part that charts have: Plotly imports and checks each on demand."""
    axis = {"title": {"text": "axis"}, "type": "log", "tickvals": [1], "ticktext": ["1"]}
    marker = {"color": ["#000000"], "line": {"width": 1}, "symbol": ["circle"], "size": 8}
    go.Figure(
        [
            go.Scatter(x=[1], y=[1], line={"width": 1}, marker=marker, error_y={"array": [1]}),
            go.Box(x=[1], y=[1], line={"width": 1}, marker={"size": 4}),
            go.Heatmap(z=[[1]]),
            go.Bar(x=[1], y=[1]),
        ],
        {"xaxis": axis, "yaxis": axis},
    ).to_plotly_json()
