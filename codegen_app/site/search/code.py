"""Search kernels by their parameters and by the instructions of their listings.

Both use indexes: of the configurations (GIN), and of instruction names, which are no more than
instruction sets have (``kernels/services/instructions.py`` counts them).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from urllib.parse import urlencode

from django.db.models import Count, Q
from django.db.models.fields.json import KeyTransform
from django.urls import reverse

from codegen_app.kernels.models import GeneratedKernel, InstructionUse, Mnemonic
from codegen_app.site.search.model import Hit

_PARAMETER = re.compile(r"([A-Za-z]\w{0,60})\s*=\s*(\S{0,60})")
_NAME = re.compile(r"[A-Za-z]\w{1,60}")
_MNEMONIC = re.compile(r"[A-Za-z][\w.]{1,99}")
_MAX_KERNELS = 5_000  # kernels whose values of a parameter are counted
_LISTED_FROM = 3  # for more instructions than these, kernels would be mixed up


def parameters(query: str, limit: int) -> list[Hit]:
    """Find kernels with ``BLOCK_K=128``; for a parameter's name alone (``BLOCK_K``) its values."""
    match = _PARAMETER.fullmatch(query)
    name, text = (match[1], match[2]) if match else (query, "")
    if match and text:
        # A configuration may hold a number or a word.
        values: list[object] = [text]
        with suppress(ValueError):
            values.append(json.loads(text.lower()))
        condition = Q()
        for key in _spellings(name):
            for value in values:
                condition |= Q(config__contains={key: value})
        rows = GeneratedKernel.objects.filter(condition).order_by("-pk")
        return [
            Hit("kernel", row.name, row.get_absolute_url(), f"{name}={text}, {row.template}")
            for row in rows.only("name", "config", "template")[:limit]
        ]
    if not _NAME.fullmatch(name):
        return []
    hits = []
    for key in _spellings(name):
        kernels = GeneratedKernel.objects.filter(config__has_key=key).order_by()
        configs = kernels.annotate(value=KeyTransform(key, "config")).values_list(
            "value", flat=True
        )
        counts = Counter(json.dumps(value) for value in configs[:_MAX_KERNELS])
        hits += [
            _narrower_hit(
                "parameter",
                f"{key}={json.loads(value)}",
                f"{count} kernel{'' if count == 1 else 's'}",
            )
            for value, count in counts.most_common()
        ]
    return hits[:limit]


def _spellings(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((name, name.lower(), name.upper())))


def instructions(query: str, limit: int) -> list[Hit]:
    """Find instructions by part of their names, each with the number of builds that have it."""
    if not _MNEMONIC.fullmatch(query):
        return []
    mnemonics = Mnemonic.objects.filter(name__icontains=query).order_by("name")
    names = dict(mnemonics.values_list("pk", "name")[:limit])
    counts = dict(
        InstructionUse.objects.filter(mnemonic__in=names)
        .order_by()
        .values_list("mnemonic")
        .annotate(Count("pk"))
    )
    return [
        _narrower_hit("instruction", name, f"in {counts.get(key, 0)} builds")
        for key, name in names.items()
    ]


def with_instruction(query: str, limit: int) -> list[Hit]:
    """Find builds with an instruction, if the query identifies one."""
    if not _MNEMONIC.fullmatch(query):
        return []
    names = Mnemonic.objects.filter(name__iexact=query) or Mnemonic.objects.filter(
        name__icontains=query
    )
    keys = list(names.order_by("name").values_list("pk", flat=True)[: _LISTED_FROM + 1])
    if len(keys) > _LISTED_FROM:
        return []
    rows = InstructionUse.objects.filter(mnemonic__in=keys).order_by("-pk")
    uses = rows.select_related("mnemonic", "build__kernel").only(
        "count", "mnemonic__name", "build__target", "build__kernel__name"
    )
    return [
        Hit(
            "kernel",
            use.build.kernel.name,
            f"{use.build.kernel.get_absolute_url()}?build={use.build_id}",
            f"{use.count} times {use.mnemonic.name} on {use.build.target}",
        )
        for use in uses[:limit]
    ]


def _narrower_hit(kind: str, text: str, where: str) -> Hit:
    """Return a hit that narrows the search."""
    return Hit(kind, text, f"{reverse('search')}?{urlencode({'q': text})}", where)
