"""Whatever a parameter, a field or a path says: a page or one line, never an error of ours."""

from __future__ import annotations

import os
import random
import sys

import pytest
from django.test import Client
from django.urls import reverse

from codegen_app.tuning.models import Selection
from tests.attacks import parameters
from tests.support.pages_world import World

pytestmark = pytest.mark.django_db
USUAL = {parameters.COUNT: 100, parameters.SEED: 0}  # of some ten thousand of each kind


def reading(world: World) -> list[str]:
    kernel, build = world.kernels[0], world.kernels[0].builds.get(target="gfx942")
    return [
        *("/", "/graphs", world.graph.get_absolute_url(), world.nodes[0].get_absolute_url()),
        *("/kernels", kernel.get_absolute_url(), "/runs", world.run.get_absolute_url()),
        *(
            "/devices",
            "/search",
            "/selections",
            "/figures",
            "/tour/1",
            "/glossary",
            "/ops",
            "/compare",
            "/compare/revisions",
            "/rules",
            "/team",
            "/retune",
            "/import",
        ),
        *("/components", f"{kernel.get_absolute_url()}/{build.pk}/lines/1"),
        *(f"{kernel.get_absolute_url()}/{build.pk}/kernel.s", "/login/", "/admin/"),
        *(f"{world.run.get_absolute_url()}/ledger.jsonl", "/selections/export.json"),
        *(
            f"{world.graph.get_absolute_url()}/bundle.zip",
            f"{kernel.get_absolute_url()}/bundle.zip",
        ),
        *("/admin/codegen_app/graph/", "/admin/codegen_app/tuningrun/"),
    ]


def writing(world: World) -> list[str]:
    return [
        reverse("retune"),
        reverse("import"),
        reverse("import_selections"),
        reverse("cancel_run", args=[world.run.pk]),
        reverse("put_back", args=[Selection.objects.get().pk]),
        reverse("put_back_run", args=[world.run.pk]),
        reverse("build_kernel", args=[world.kernels[0].name]),
        "/login/",
        "/admin/codegen_app/retuneschedule/add/",
        "/admin/codegen_app/tuningrun/",
    ]


@pytest.mark.full
def test_no_value_is_an_error_of_ours(admin_client: Client, world: World) -> None:
    count, seed = (int(os.environ.get(name, usual)) for name, usual in USUAL.items())
    for requests in (
        parameters.readings(reading(world)),
        parameters.paths(reading(world)),
        parameters.writings(writing(world)),
    ):
        every = list(requests)
        some = random.Random(seed).sample(every, min(count, len(every)))
        assert parameters.failed(admin_client, some) == {}
        sys.stdout.write(f"{len(some)} of {len(every)} requests, no error of ours\n")
