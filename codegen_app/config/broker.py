"""The queue's transport: a folder by default, Redis or RabbitMQ by URL."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_FOLDERS = ("data_folder_in", "processed_folder", "control_folder")


def transport_options(url: str, folder: Path) -> dict[str, Any]:
    """Kombu's options for the broker.

    For ``filesystem://``: messages lie in ``folder/messages`` until they are taken;
    ``folder/control`` holds which queue hears which broadcast.
    """
    if not url.startswith("filesystem:"):
        return {}
    return {
        "data_folder_in": str(folder / "messages"),
        "data_folder_out": str(folder / "messages"),
        "processed_folder": str(folder / "taken"),
        "control_folder": str(folder / "control"),
        # Taken messages are moved away and swept later (services/upkeep.py). Kombu's other way
        # leads through the shared temporary folder, where another user's files may be in the way.
        "store_processed": True,
        "polling_interval": 0.25,
    }


def make_folders(options: Mapping[str, Any]) -> None:
    """Make the folders of a ``filesystem://`` broker; kombu expects them to be there."""
    for name in _FOLDERS:
        if name in options:
            Path(options[name]).mkdir(parents=True, exist_ok=True)
