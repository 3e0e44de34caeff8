"""The kernel texts of this folder, compiled once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import jinja2


@cache
def environment() -> jinja2.Environment:
    """Jinja over ``*.hip.jinja``: a name that a template does not get is an error."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - the text is C++, no page
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@cache
def kernel_text(name: str) -> jinja2.Template:
    """The compiled template ``name``."""
    return environment().get_template(name)
