"""Who may change what."""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required

# Starting and cancelling runs, asking for builds, putting choices back.
may_retune = permission_required("codegen_app.retune", raise_exception=True)
