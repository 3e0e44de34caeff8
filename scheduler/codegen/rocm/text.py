"""Kernel texts: Jinja templates beside this file, each compiled once."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from scheduler.codegen.cpp.lines import Lines


def _computes(nodes: tuple[str, ...]) -> str:
    """The mark at the end of a line that computes these graph nodes."""
    line = Lines(indent=0)
    line.add("", nodes)
    return str(line)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(  # noqa: S701 - C++, not HTML
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["computes"] = _computes
    return environment


@cache
def kernel_text(name: str) -> Template:
    """The compiled template ``<name>.hip.jinja``."""
    return _environment().get_template(f"{name}.hip.jinja")
