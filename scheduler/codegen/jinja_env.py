"""Kernel sources: Jinja templates beside the Python files that render them, in a language's folder
and the folders of its templates."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template


@cache
def _environment(folder: Path) -> Environment:
    return Environment(
        loader=FileSystemLoader([folder, *(path for path in folder.iterdir() if path.is_dir())]),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - the text is a kernel's, not a page
        auto_reload=False,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def load_template(folder: Path, file: str) -> Template:
    """Return a template of the folder or of one directly in it, compiled once; an undefined name
    is an error."""
    return _environment(folder).get_template(file)
