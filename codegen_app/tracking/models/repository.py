"""Repositories: which branch is the trunk, and where revisions are shown."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models

AUTOMATIC_TRUNK = ("main", "master", "trunk")
"""The trunk of a repository whose default branch is unknown."""

COMMIT, BEFORE, AFTER = "{commit}", "{before}", "{after}"


def check_commit_url(pattern: str) -> None:
    """Raise ``ValidationError`` unless it is a web address with ``{commit}``."""
    _check_pattern(pattern, (COMMIT,))


def check_compare_url(pattern: str) -> None:
    """Raise ``ValidationError`` unless it is a web address with ``{before}`` and ``{after}``."""
    _check_pattern(pattern, (BEFORE, AFTER))


def _check_pattern(pattern: str, names: tuple[str, ...]) -> None:
    fixed = pattern
    for name in names:
        if pattern.count(name) != 1:
            raise ValidationError(f"must contain {' and '.join(names)} once")
        fixed = fixed.replace(name, "")
    if not fixed.startswith(("https://", "http://")):
        raise ValidationError("must begin with https:// or http://")
    if any(character.isspace() or character in "\"'<>\\{}" for character in fixed):
        raise ValidationError("must not contain spaces, quotes, braces, < or >")


class Repository(models.Model):
    """A repository by the name that revisions are sent with ("" for revisions without one).

    Its trunk are the revisions without a branch and those of ``default_branch``: one name, or
    several separated by spaces if the branch was renamed. It is blank until a client sends it or an
    administrator sets it; until then, the trunk are the branches of ``AUTOMATIC_TRUNK``. After a
    change, points are marked again, series by series, in the order of their numbers:
    ``marked_series`` is the last one that is done, null if all are (``services/trunk.py``).

    ``commit_url`` and ``compare_url`` are the addresses of a commit and of the commits between two;
    if blank, they follow from the repository's name if it is a web address.
    """

    name = models.CharField(max_length=300, unique=True, blank=True)
    default_branch = models.CharField(
        max_length=500,
        blank=True,
        help_text="The branch whose history is tracked. Empty: the default branch that a client"
        f" sends, until then {', '.join(AUTOMATIC_TRUNK)}. Several names of a renamed branch are"
        " separated by spaces.",
    )
    commit_url = models.CharField(
        "URL of a commit",
        max_length=500,
        blank=True,
        validators=[check_commit_url],
        help_text="For example https://forge.example/x/commit/{commit}. Empty: derived from the"
        " name if it is a web address.",
    )
    compare_url = models.CharField(
        "URL of a comparison",
        max_length=500,
        blank=True,
        validators=[check_compare_url],
        help_text="For example https://forge.example/x/compare/{before}...{after}",
    )
    marked_series = models.PositiveBigIntegerField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "repositories"

    def __str__(self) -> str:
        return self.name or "(no repository)"

    @property
    def trunk(self) -> tuple[str, ...]:
        """Return the names of the branches that form the trunk."""
        return tuple(self.default_branch.split()) or AUTOMATIC_TRUNK

    def is_trunk(self, branch: str) -> bool:
        """Return whether revisions of this branch belong to the trunk."""
        return not branch or branch in self.trunk
