"""The signal of a decided problem.

``result_chosen`` is sent in the transaction that records the decision, with the ``result`` of the
chosen kernel and ``measured_at``, None if it was measured just now.
"""

from __future__ import annotations

from django.dispatch import Signal

result_chosen = Signal()
