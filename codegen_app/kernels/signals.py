"""Signals of builds, sent in the transaction that closes the build.

``build_finished`` is sent with ``build``; ``build_replaced`` with ``build`` and ``new``, the same
build with this host's compiler.
"""

from __future__ import annotations

from django.dispatch import Signal

build_finished = Signal()
build_replaced = Signal()
