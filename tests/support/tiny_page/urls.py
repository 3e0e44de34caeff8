"""Our URLs, and one more."""

from __future__ import annotations

from codegen_app import urls
from codegen_app.urls import handler400, handler403, handler404, handler500
from codegen_app.web.page import with_json_view
from codegen_app.web.pagecache.cache import CachePolicy
from tests.support.tiny_page.view import tiny

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]
urlpatterns = [*with_json_view("tiny", tiny, "tiny", CachePolicy()), *urls.urlpatterns]
