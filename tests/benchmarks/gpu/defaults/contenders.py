"""What is measured of a shape: each language's default, and other candidates of it."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler import pipeline
from scheduler.codegen.languages import language_of
from scheduler.codegen.scheduling import BaseScheduling
from scheduler.errors import UserError
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.targets import Target
from tests.benchmarks.cycles.candidates import choosing, longest, others
from tests.benchmarks.gpu.making import Shop


@dataclass(frozen=True)
class Contender:
    """A candidate of a language; ``default``: the one that is chosen in it without measurement."""

    language: str
    title: str
    default: bool
    choose: pipeline.Chooser


def language(plan: Schedule, target: Target) -> str:
    """Of the default of the plan's longest node, where any language is allowed."""
    backend = pipeline.scheduling(plan, (target,), any_language=True)
    return language_of(backend.default(longest(plan)).kernel.source_file)


def contenders(plan: Schedule, shop: Shop, most: int) -> tuple[Contender, ...]:
    """Of each language that serves the plan's longest node its default, and of all languages at
    most so many other candidates, in equal parts."""
    node = longest(plan)
    backend = pipeline.scheduling(plan, (shop.target,))
    serving = [member for member in backend.members if _serves(member, node, shop)]
    found = []
    for member in serving:
        language, default = language_of(member.source_file), member.default(node)
        found.append(Contender(language, default.description, True, choosing(default)))
        share = max(most // len(serving), 1)
        found += [
            Contender(language, caller.description, False, choosing(caller))
            for caller in others(member.template(node), shop.target, share)
        ]
    return tuple(found)


def _serves(member: BaseScheduling, node: SchedulerNode, shop: Shop) -> bool:
    """Whether the language has a kernel for the node, and something here builds it."""
    if not member.serves(node):
        return False
    try:
        shop.compiler(shop.target, member.source_file)
        member.default(node)
    except UserError:
        return False
    return True
