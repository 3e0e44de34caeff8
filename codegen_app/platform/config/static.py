"""Static files named by the digest of their content, so that browsers cache them permanently."""

from __future__ import annotations

from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Scripts import one another by digest, too: otherwise each import would be requested anew, and
    a new script could run beside an old one."""

    support_js_module_import_aggregation = True
