"""Two builds side by side."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse

from codegen_app.models import Build
from codegen_app.selectors.pages.compare import compare_page
from codegen_app.views.page import respond


def compare(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """``?left=`` and ``?right=`` are builds; the address holds the whole comparison."""
    left, right = request.GET.get("left", ""), request.GET.get("right", "")
    if not (left.isdecimal() and right.isdecimal()):
        raise Http404("compare needs two builds: ?left=NUMBER&right=NUMBER")
    try:
        page = compare_page(int(left), int(right))
    except Build.DoesNotExist as error:
        raise Http404(str(error)) from None
    return respond(
        request,
        "pages/compare.html",
        page,
        as_json=as_json,
        title="Compare",
        sides=[("left", page.left), ("right", page.right)],
    )
