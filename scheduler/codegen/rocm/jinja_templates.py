"""Kernel sources in HIP C++: the Jinja templates in this folder and in those of the templates."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Template

from scheduler.codegen.jinja_env import load_template


@cache
def kernel_template(name: str) -> Template:
    """Return the compiled template ``<name>.hip.jinja``; an undefined name is an error."""
    folder = Path(__file__).parent
    (file,) = folder.rglob(f"{name}.hip.jinja")
    return load_template(folder, file.relative_to(folder).as_posix())
