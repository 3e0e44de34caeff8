"""Help on an instruction, as a page and, for the kernel's page, as JSON."""

from __future__ import annotations

import re

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from codegen_app.kernels.pages.instruction.query import instruction_page
from codegen_app.web.page import render_page
from scheduler.errors import UserError

_NAME = re.compile(r"[A-Za-z][\w.:]{0,79}")
_MAX_AGE_S = 3600  # in browsers: it changes only with Kiln's version


def instruction(
    request: HttpRequest, target: str, mnemonic: str, *, as_json: bool = False
) -> HttpResponse:
    """The effect and the cost of an instruction."""
    if not _NAME.fullmatch(mnemonic):
        raise Http404("invalid instruction name")
    try:
        page = instruction_page(target, mnemonic)
    except UserError as error:
        raise Http404(str(error)) from None
    answer = render_page(
        request,
        "kernels/instruction.html",
        page,
        as_json=as_json,
        title=f"{mnemonic} on {target}",
    )
    if as_json:
        answer.headers["Cache-Control"] = f"private, max-age={_MAX_AGE_S}"
        answer.is_for_all = True  # type: ignore[attr-defined] # the session's middleware asks
    return answer


def help_address(target: str) -> str:
    """Return the common prefix of the addresses of a target's instructions."""
    return reverse("instruction", args=[target, "x"]).removesuffix("x")
