"""The API's description, as a page and as OpenAPI, and the client."""

from __future__ import annotations

from importlib import resources

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

from codegen_app.site.api.urls import openapi
from codegen_app.site.pages.api.query import api_page
from codegen_app.web.page import download, render_page
from scheduler import clients

CLIENT = "kiln_client.py"
_EXAMPLE = "https://kiln.example"


def api_docs(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """The page, rendered by us, since other renderers need their own scripts."""
    page = api_page(openapi())
    return render_page(
        request,
        "site/api.html",
        page,
        as_json=as_json,
        title="API",
        client=CLIENT,
        site_url=settings.SITE_URL or _EXAMPLE,
    )


def api_schema(_: HttpRequest) -> HttpResponse:
    """The OpenAPI description."""
    return JsonResponse(openapi(), json_dumps_params={"indent": 1})


def api_client(_: HttpRequest) -> HttpResponse:
    """The client: one file that needs only Python."""
    content = resources.files(clients).joinpath(CLIENT).read_bytes()
    return download(content, CLIENT, "text/x-python; charset=utf-8")
