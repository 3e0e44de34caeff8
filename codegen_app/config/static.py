"""Static files by the digest of what they hold, so that browsers keep them for good."""

from __future__ import annotations

from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Scripts name one another by digest too: else each import would be asked for anew, and a
    script that is new would run beside one that is old."""

    support_js_module_import_aggregation = True
