"""Kernel sources in CuteDSL: the Jinja templates beside this file, and our device functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from jinja2 import Template

from scheduler.codegen.jinja_env import load_template


def kernel_template(name: str) -> Template:
    """Return the compiled template ``<name>.py.jinja``; an undefined name is an error."""
    return load_template(Path(__file__).parent, f"{name}.py.jinja")


@dataclass(frozen=True)
class _DeviceFunction:
    text: str
    uses: frozenset[str]


def device_functions(code: str) -> str:
    """Return the device functions of ours that ``code`` calls, directly or indirectly, in the order
    of their file, each ending with two empty lines."""
    functions = _device_functions()
    needed: set[str] = set()
    pending = [name for name in functions if re.search(rf"(?<![.\w]){name}\(", code)]
    while pending:
        name = pending.pop()
        if name not in needed:
            needed.add(name)
            pending.extend(functions[name].uses)
    return "".join(f"{functions[name].text}\n\n\n" for name in functions if name in needed)


@lru_cache(maxsize=1)
def _device_functions() -> Mapping[str, _DeviceFunction]:
    text = kernel_template("device_functions").render()
    definitions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    names = frozenset(definition.name for definition in definitions)
    functions = {}
    for definition in definitions:
        callees = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)} & names
        source = ast.get_source_segment(text, definition) or ""
        functions[definition.name] = _DeviceFunction(source, frozenset(callees))
    return functions
