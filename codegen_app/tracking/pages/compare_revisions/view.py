"""The pages that compare two revisions, branches or runs over all their series."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from codegen_app.tracking.compare_revisions.comparison import STATUSES, Grouping, compare_sides
from codegen_app.tracking.compare_revisions.sides import BASE, comparison_url, revision_text
from codegen_app.tracking.pages.compare_revisions.form import RevisionsForm
from codegen_app.tracking.pages.compare_revisions.query import revisions_page, side_choices_page
from codegen_app.web.addresses import absolute_url, replace_query
from codegen_app.web.forms.query import hidden_params
from codegen_app.web.page import render_page
from scheduler.errors import UserError

_UNPROCESSABLE = 422
_LEAST_EFFECTS = (0.005, 0.01, 0.02, 0.05)
_TEMPLATE = "tracking/compare_revisions.html"


def compare_revisions(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """``?before=…&after=…``: the address holds the whole comparison and the displayed part; if a
    side is missing, the page lists the choices."""
    address = RevisionsForm(request.GET)
    before, after = address.text("before"), address.text("after")
    page, problem, side = None, "", "after" if before else "before"
    if before and after:
        try:
            page = revisions_page(
                before,
                after,
                address.text("repository"),
                address.grouping,
                address.settings,
                address.text("status"),
                address.text("search"),
                address.text("within"),
                address.number("start") or 0,
            )
        except UserError as error:
            problem = str(error)
            side = "after" if problem.startswith("after") else "before"
    if page is None:
        other = before if side == "after" else after
        page = side_choices_page(address.text("find"), problem, other)
    swapped = ""
    if page.before is not None and page.after is not None:
        # A merge base by its own name: it is defined only relative to the other side.
        base = page.before
        text = revision_text(base.name) if base.text.startswith(BASE) else base.text
        swapped = replace_query(request, before=page.after.text, after=text, start="")
    links = page.links
    box = "search" if page.after else "find"  # the form's field, of which the others are kept
    return render_page(
        request,
        _TEMPLATE,
        page,
        as_json=as_json,
        title="Compare revisions",
        address=address,
        status=_UNPROCESSABLE if page.problem else 200,
        side=side,  # the side to choose: the invalid or the missing one
        sides=(
            ("before", page.before, links and links.before, links and links.before_pull_request),
            ("after", page.after, links and links.after, links and links.after_pull_request),
        ),
        kept=hidden_params(request.GET, [key for key in request.GET if key not in (box, "start")]),
        swapped=swapped,
        statuses=STATUSES,
        groupings=tuple(Grouping),
        least_effects=sorted({*_LEAST_EFFECTS, page.least_effect}),
        markdown_url=f"{reverse('compare_revisions_md')}?{request.GET.urlencode()}",
    )


def compare_revisions_markdown(request: HttpRequest) -> HttpResponse:
    """The comparison for a pull request; one error line with status 422."""
    address = RevisionsForm(request.GET)
    kind = "text/markdown; charset=utf-8"
    before, after, repository = map(address.text, ("before", "after", "repository"))
    try:
        if address.lines:
            raise UserError(address.lines[0])
        found = compare_sides(before, after, repository, address.grouping, address.settings)
    except UserError as error:
        return HttpResponse(f"{error}\n", kind, _UNPROCESSABLE)
    settings = {name: request.GET.get(name, "") for name in ("repository", "group", "least_effect")}
    link = absolute_url(comparison_url(before, after, **settings))
    return HttpResponse(found.markdown(link), kind)
