"""Signals of graphs: each is sent with ``graph``.

``graph_imported`` is sent in the transaction that records the graph, ``graph_prepared`` after that
of its preparation, ``graph_rejected`` in the one that rejects it, with the ``reason``.
"""

from __future__ import annotations

from django.dispatch import Signal

graph_imported = Signal()
graph_prepared = Signal()
graph_rejected = Signal()
