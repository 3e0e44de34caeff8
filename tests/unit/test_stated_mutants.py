"""The stated mutants (``tests/mutants.toml``) can all be made of the code as it is."""

from __future__ import annotations

from tests import mutants


def test_every_mutant_can_be_made() -> None:
    """Where one cannot, its text has moved or changed: state the fault in the new text."""
    why = {mutant.number: mutants.obstacle(mutant) for mutant in mutants.read()}
    assert {number: reason for number, reason in why.items() if reason} == {}
