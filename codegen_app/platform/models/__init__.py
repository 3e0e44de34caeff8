"""Stored files, and messages of the broker."""

from __future__ import annotations

from codegen_app.platform.models.artifact import Artifact
from codegen_app.platform.models.message import Message, Round

__all__ = [
    "Artifact",
    "Message",
    "Round",
]
