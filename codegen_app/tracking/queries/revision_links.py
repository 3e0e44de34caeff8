"""Web pages of revisions, and of the commits between two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from codegen_app.tracking.models import Repository, Revision
from codegen_app.tracking.models.repository import AFTER, BEFORE, COMMIT


@dataclass(frozen=True)
class RevisionLinks:
    """Addresses by the URL patterns of the repositories; without a pattern, by the repository's
    name if it is a web address."""

    repositories: Mapping[str, Repository]

    def commit(self, revision: Revision) -> str:
        """Return the web page of a revision; "" if unknown."""
        name = quote(revision.name, safe="")
        repository = self.repositories.get(revision.repository)
        if repository is not None and repository.commit_url:
            return repository.commit_url.replace(COMMIT, name)
        root = _repository_url(revision.repository)
        return f"{root}/commit/{name}" if root else ""

    def pull_request(self, revision: Revision) -> str:
        """Return the web page of a revision's pull request, from its address or its number; "" if
        unknown."""
        text = revision.pull_request
        if text.startswith(("https://", "http://")):
            return text
        root = _repository_url(revision.repository)
        number = text.removeprefix("#").removeprefix("!")
        if not root or not number.isascii() or not number.isdecimal():
            return ""
        inner = "/-/merge_requests/" if _is_gitlab(root) else "/pull/"
        return f"{root}{inner}{number}"

    def diff(self, before: Revision, after: Revision) -> str:
        """Return the web page of the commits between two revisions of one repository; "" if
        unknown."""
        if before.repository != after.repository or before.name == after.name:
            return ""
        names = quote(before.name, safe=""), quote(after.name, safe="")
        repository = self.repositories.get(after.repository)
        if repository is not None and repository.compare_url:
            return repository.compare_url.replace(BEFORE, names[0]).replace(AFTER, names[1])
        root = _repository_url(after.repository)
        inner = "/-/compare/" if _is_gitlab(root) else "/compare/"
        return f"{root}{inner}{names[0]}...{names[1]}" if root else ""


def revision_links(revisions: Iterable[Revision | None]) -> RevisionLinks:
    """Return the links of these revisions (1 query)."""
    names = {revision.repository for revision in revisions if revision is not None}
    rows = Repository.objects.filter(name__in=names)
    return RevisionLinks({row.name: row for row in rows})


def _is_gitlab(root: str) -> bool:
    return "gitlab" in root.partition("//")[2].partition("/")[0]


def _repository_url(repository: str) -> str:
    """Return ``https://github.com/owner/name`` from a browsing or clone address."""
    text = repository.strip()
    if text.startswith("git@") and ":" in text:
        host, _, path = text.removeprefix("git@").partition(":")
        text = f"https://{host}/{path}"
    if not text.startswith(("https://", "http://")) or any(
        c.isspace() or c in "\"'<>\\?#@" for c in text
    ):
        return ""
    return text.rstrip("/").removesuffix(".git")
