"""Every package is in the order of imports that ``make check`` holds."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
LAYERS = [
    module.strip()
    for contract in TOOLS["importlinter"]["contracts"]
    for layer in contract.get("layers", ())
    for module in layer.replace("|", ":").split(":")
]
WITHOUT_IMPORTS = {"codegen_app.migrations"}


@pytest.mark.parametrize("package", ["scheduler", "codegen_app"])
def test_every_module_is_in_a_layer(package: str) -> None:
    files = [path.relative_to(ROOT).with_suffix("") for path in (ROOT / package).rglob("*.py")]
    modules = {".".join(path.parts) for path in files if path.name != "__init__"}
    known = {*LAYERS, *WITHOUT_IMPORTS}
    assert {
        module for module in modules if not any(f"{module}.".startswith(f"{one}.") for one in known)
    } == set()
