"""The commands that empty pages name: they do what the page says, and refuse in one line."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from codegen_app.graphs.models import Graph
from codegen_app.tuning.models import TuningRun
from codegen_app.workers.models import State
from scheduler import samples

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def test_a_model_is_imported_and_tuned() -> None:
    path = str(samples.path("gpt2_2layer"))
    said = run("import_graph", path, "--target", "gfx90a")
    graph = Graph.objects.get()
    assert (graph.name, graph.targets, graph.state) == ("gpt2_2layer", ["gfx90a"], State.QUEUED)
    assert f"/graphs/{graph.pk}" in said
    assert "already imported" in run("import_graph", path)
    (symbol,) = graph.symbols
    said = run(
        "retune", "gpt2_2layer", "--bind", f"{symbol}=16", "--limit", "2", "--strategy", "local"
    )
    tuning = TuningRun.objects.get()
    assert f"/runs/{tuning.pk}" in said
    assert (tuning.bindings, tuning.candidate_limit) == ({symbol: 16}, 2)
    assert tuning.strategy == "local"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["import_graph", "/nowhere/model.pt2"], "does not exist"),
        (["import_graph", __file__], "test_commands"),
        (
            ["import_graph", str(samples.path("gpt2_2layer")), "--model-name", "encoder"],
            "no model 'encoder'; the models are 'model'",
        ),
        (["retune", "nothing"], "imported: none"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], expected: str) -> None:
    with pytest.raises(CommandError) as error:
        run(*arguments)
    message = str(error.value)
    assert expected in message
    assert "\n" not in message


def test_a_wrong_size_or_node_is_one_line() -> None:
    run("import_graph", str(samples.path("gpt2_2layer")))
    for arguments, expected in (
        (["--bind", "s=x"], "SYMBOL=SIZE"),
        (["--bind", "s=3"], "has no symbolic size 's'"),
        (["--node", "nothing"], "no scheduled node"),
        (["--target", "gfx1"], "gfx1"),
    ):
        with pytest.raises(CommandError, match=expected):
            run("retune", "gpt2_2layer", *arguments)
    assert not TuningRun.objects.exists()
