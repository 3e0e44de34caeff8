"""The queue's transport: a folder by default, Redis or RabbitMQ by URL."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def transport_options(url: str, folder: Path) -> dict[str, Any]:
    """Kombu's options for the broker; makes the folders of a ``filesystem://`` one.

    Messages lie in ``folder/messages`` until they are taken; ``folder/control`` holds which
    queue hears which broadcast.
    """
    if not url.startswith("filesystem:"):
        return {}
    messages, taken, control = (folder / part for part in ("messages", "taken", "control"))
    for part in (messages, taken, control):
        part.mkdir(parents=True, exist_ok=True)
    return {
        "data_folder_in": str(messages),
        "data_folder_out": str(messages),
        "processed_folder": str(taken),
        "control_folder": str(control),
        # Taken messages are removed, but through a folder of ours: kombu's default is the shared
        # temporary folder, where another user's files of the same name would be in the way.
        "store_processed": True,
        "polling_interval": 0.25,
    }
