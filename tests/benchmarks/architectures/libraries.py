"""timm, transformers and diffusers, none of which the project depends on, loaded offline."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path
from typing import Any

import torch

_REGISTERED = re.compile(r'register_(?:meta|fake)\("(?:torchvision::)?(\w+)"')
_kept: list[Any] = []  # definitions last as long as their library


def prepare() -> None:
    """To be called before any of them is imported.

    torchvision (timm imports it) registers shapes for ops of its compiled part. Where that part
    was built for another torch the ops are not there: they are declared, which no model here
    calls, so that its Python part loads.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    spec = importlib.util.find_spec("torchvision")
    if spec is None or not spec.submodule_search_locations or _kept:
        return
    folder = Path(spec.submodule_search_locations[0])
    library = torch.library.Library("torchvision", "FRAGMENT")
    _kept.append(library)
    text = (folder / "_meta_registrations.py").read_text()
    for name in sorted(set(_REGISTERED.findall(text))):
        library.define(f"{name}(Tensor x) -> Tensor")


def versions() -> str:
    """Of what is installed."""
    import diffusers
    import timm
    import transformers

    return (
        f"torch {torch.__version__}, timm {timm.__version__},"
        f" transformers {transformers.__version__}, diffusers {diffusers.__version__}"
    )
