"""The pages' addresses. Models link to ``graph``, ``template_node``, ``kernel``, ``tuning_run``."""

from __future__ import annotations

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
