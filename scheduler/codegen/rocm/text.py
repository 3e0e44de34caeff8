"""Kernel texts: Jinja templates beside this file, each compiled once."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - the text is C++, no page
        auto_reload=False,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def kernel_text(name: str) -> Template:
    """The compiled template ``<name>.hip.jinja``; a name that it does not get is an error."""
    return _environment().get_template(f"{name}.hip.jinja")
