"""Kernel sources in HIP C++: the Jinja templates in this folder and in those of the templates."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Template

from scheduler.codegen.jinja_env import load_template


def kernel_template(name: str) -> Template:
    """Return the compiled template ``<name>.hip.jinja``; an undefined name is an error."""
    return load_template(Path(__file__).parent, f"{name}.hip.jinja")
