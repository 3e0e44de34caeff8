"""Graphs, their nodes and problems."""

from __future__ import annotations

from codegen_app.graphs.models.graph import Graph, GraphNode
from codegen_app.graphs.models.template_node import Problem, TemplateNode
from codegen_app.graphs.models.torch_comparison import TorchComparison

__all__ = [
    "Graph",
    "GraphNode",
    "Problem",
    "TemplateNode",
    "TorchComparison",
]
