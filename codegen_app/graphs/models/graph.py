"""A model's graph as it was imported: symbols, inputs, outputs, and its nodes with origins."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse

from codegen_app.platform.models.artifact import Artifact
from codegen_app.workers.models.work import Work


class Graph(Work):
    """One imported model. Its work is the preparation: lower, schedule, render the candidates.

    ``digest`` is the sha256 of the graph's content, so that the same model saved twice is one row.
    ``symbols`` maps a symbolic size to ``{hint, min, max}`` (max null if the export gives none);
    ``targets`` are those that its kernels are compiled for. ``inputs`` is ``[{name, kind,
    source_name}]``, with ``written`` and ``written_by`` (names of nodes) if the model writes the
    input; ``outputs`` has names of values, followed by ``{place, value}`` for each constant that
    the model returns (``ConstantOutput``); ``tensors`` maps a value's name to ``{dtype, size,
    stride}`` with expressions as text.
    """

    name = models.CharField(max_length=200)
    digest = models.CharField(max_length=64, unique=True)
    producer = models.CharField(max_length=200, blank=True)
    file = models.ForeignKey(Artifact, on_delete=models.PROTECT, related_name="graphs")
    symbols = models.JSONField(default=dict)
    inputs = models.JSONField(default=list)
    outputs = models.JSONField(default=list)
    tensors = models.JSONField(default=dict)
    targets = models.JSONField(default=list)
    node_count = models.PositiveIntegerField()
    decisions = models.JSONField(
        default=list, help_text="Fusion: [{producer, consumer, fused, reason}]"
    )
    accounted = models.CharField(
        max_length=200, blank=True, help_text="What became of its nodes, once prepared"
    )
    wrapper = models.TextField(blank=True, help_text="wrapper.py, once prepared")
    imported_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )

    class Meta(Work.Meta):
        permissions = [("import_graph", "Can import graphs")]
        ordering = ["-created_at", "-pk"]
        indexes = [models.Index(fields=["state", "-priority", "id"], name="graph_queue")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("graph", args=[self.pk])


class GraphNode(models.Model):
    """One call in the graph, with the line of the model's source that it came from.

    ``target`` is the op with its overload (``aten.addmm.default``); ``arguments`` is ``{args:
    [text], kwargs: {name: text}}`` for display; ``inputs`` names the values it reads and
    ``outputs`` the values it creates. ``frames`` is ``[{file, line, function, code}]``, innermost
    last; ``source`` is the model's own line among these (``model/mlp.py:12``), for searching.
    """

    graph = models.ForeignKey(Graph, on_delete=models.CASCADE, related_name="nodes")
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=200)
    target = models.CharField(max_length=200)
    arguments = models.JSONField(default=dict)
    inputs = models.JSONField(default=list)
    outputs = models.JSONField(default=list)
    module_path = models.CharField(max_length=500, blank=True)
    module_type = models.CharField(max_length=300, blank=True)
    torch_function = models.CharField(max_length=300, blank=True)
    frames = models.JSONField(default=list)
    source = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["graph", "position"]
        constraints = [
            models.UniqueConstraint(fields=["graph", "name"], name="graphnode_name_once"),
            models.UniqueConstraint(fields=["graph", "position"], name="graphnode_position_once"),
            models.CheckConstraint(name="graphnode_has_target", condition=~Q(target="")),
        ]

    def __str__(self) -> str:
        return self.name
