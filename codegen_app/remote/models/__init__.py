"""Leases of remote workers."""

from __future__ import annotations

from codegen_app.remote.models.remote_lease import LeaseEnd, RemoteLease

__all__ = [
    "LeaseEnd",
    "RemoteLease",
]
