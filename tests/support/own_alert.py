"""A change of a series that was measured here, for tests of what is done about it."""

from __future__ import annotations

import pytest

from codegen_app.kernels.services import remote_builds
from codegen_app.tasks import measure
from codegen_app.tracking.models import Alert, Change, Series
from codegen_app.tracking.services import history
from codegen_app.tuning.services import planning, run_requests
from scheduler.tuning.budget import Budget
from tests.app import factories


def own_alert(patch: pytest.MonkeyPatch) -> Alert:
    """A change between two revisions of a problem that the emulation timed, by real builds."""
    patch.setattr(remote_builds, "_UNCLAIMED_AFTER_S", 0.0)
    graph = factories.prepared_graph()
    node = factories.small_node(graph)
    least = {name: info["min"] for name, info in graph.symbols.items()}
    for name in ("first", "second"):
        patch.setattr(history, "own_revision", lambda name=name: name)
        budget = Budget(seconds=3600, measurements=1)
        run_requests.start_run(graph, "cpu", "cpu", least, None, template_node=node, budget=budget)
        assert planning.plan_waiting() == 1
        measure("cpu")
    series = Series.objects.get()
    before, after = series.data.order_by("at")
    alert = Alert.objects.create(kind="regression", revision=after.revision, at=after.at)
    Change.objects.create(
        **{"series": series, "datum": after, "at": after.at, "revision": after.revision},
        **{"previous": before.revision, "before": 100.0, "after": 130.0, "n_before": 9},
        **{"n_after": 5, "errors": 9.0, "worse": True, "alert": alert},
    )
    return alert
