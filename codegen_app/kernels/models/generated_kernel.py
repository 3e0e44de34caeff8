"""Kernels by content, and the template nodes that can use them."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.urls import reverse

from codegen_app.graphs.models.template_node import TemplateNode


class GeneratedKernel(models.Model):
    """One rendered source; equal sources are one row, whichever graph they came from.

    ``source_file`` is the name of a file with the source (source.hip). ``args`` is ``[{name, type,
    is_output, dtype}]`` of the exported C function, ``launches`` ``[{function, grid, block,
    lds_bytes, args, dynamic_lds}]`` with grid expressions as text.
    """

    name = models.CharField(max_length=200, unique=True)
    source_digest = models.CharField(max_length=64, unique=True)
    template = models.CharField(max_length=64)
    config = models.JSONField(default=dict)
    source = models.TextField()
    source_file = models.CharField(max_length=40)
    args = models.JSONField(default=list)
    launches = models.JSONField(default=list)
    workspace_bytes = models.CharField(max_length=500, default="0")
    created_at = models.DateTimeField(auto_now_add=True)
    template_nodes: models.ManyToManyField[TemplateNode, KernelUse] = models.ManyToManyField(
        TemplateNode, through="KernelUse", related_name="kernels"
    )

    class Meta:
        ordering = ["name"]
        indexes = [GinIndex(fields=["config"], name="kernel_config")]
        constraints = [
            models.CheckConstraint(
                name="generatedkernel_has_source", condition=~Q(source="") & ~Q(source_file="")
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("kernel", args=[self.name])

    def page_url(self, *, target: str = "", node: int | None = None) -> str:
        """Return the URL of its page for one target, and for one node that it can serve."""
        query = {"node": node or "", "target": target}
        encoded = urlencode({name: value for name, value in query.items() if value})
        return f"{self.get_absolute_url()}?{encoded}" if encoded else self.get_absolute_url()


class KernelUse(models.Model):
    """A kernel as a candidate of one template node.

    ``call`` maps each argument to a buffer's name or an expression's text, as the wrapper passes
    them. ``line_origins`` is ``[{first, last, nodes}]``: lines of the source (1-based, inclusive)
    and the names of the graph nodes that they compute. ``is_default``: the engine's choice before
    any measurement. ``generator``: the digest of the generator that last generated it
    (``kernels/services/engine.py``), "" if unrecorded.
    """

    kernel = models.ForeignKey(GeneratedKernel, on_delete=models.PROTECT, related_name="uses")
    template_node = models.ForeignKey(TemplateNode, on_delete=models.CASCADE, related_name="uses")
    position = models.PositiveIntegerField(help_text="Order in which the engine offers it")
    is_default = models.BooleanField(default=False)
    description = models.CharField(max_length=300, blank=True)
    call = models.JSONField(default=dict)
    metadata_comment = models.TextField(blank=True)
    line_origins = models.JSONField(default=list)
    generator = models.CharField(max_length=64, blank=True, editable=False)

    class Meta:
        ordering = ["template_node", "position"]
        constraints = [
            models.UniqueConstraint(
                fields=["kernel", "template_node"], name="kerneluse_kernel_once_a_node"
            ),
            models.UniqueConstraint(
                fields=["template_node"],
                condition=Q(is_default=True),
                name="kerneluse_one_default_a_node",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kernel_id} for {self.template_node_id}"
