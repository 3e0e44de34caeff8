"""Import an uploaded file as what it is: a graph, results, points, or an external kernel."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.core.files.uploadedfile import UploadedFile
from django.template.defaultfilters import filesizeformat, pluralize
from django.urls import reverse
from django.utils import timezone

from codegen_app.accounts import permissions
from codegen_app.graphs.services import imports as graphs
from codegen_app.kernels.pages.external_kernel.form import UploadKernelForm
from codegen_app.kernels.services import external_kernels
from codegen_app.platform import sanitize
from codegen_app.site.pages.imports.forms import ImportForm
from codegen_app.tracking.services import ingest, result_import
from codegen_app.web.server.rules import denial
from scheduler.errors import UserError
from scheduler.frontends.file_kinds import Use
from scheduler.frontends.recognition import Recognition, recognize_file
from scheduler.results import file as results_file
from scheduler.text import one_line, to_identifier

_LONGEST_NAME = 120
_MAX_CANDIDATES = 10_000  # recorded in a request: about a minute


@dataclass(frozen=True)
class Imported:
    """Where what was imported is shown, whether it is new, and a message ("" for none)."""

    url: str
    new: bool = True
    text: str = ""


@dataclass(frozen=True)
class Upload:
    """An uploaded file at ``path``, with its valid forms and its sender."""

    path: Path
    shown_name: str
    recognition: Recognition
    form: ImportForm
    kernel_form: UploadKernelForm
    person: AbstractBaseUser


def import_upload(
    form: ImportForm, kernel_form: UploadKernelForm, person: AbstractBaseUser
) -> Imported:
    """Import the file of a valid form. Raises ``UserError`` with one line that names the file as
    its sender does."""
    file: UploadedFile = form.cleaned_data["file"]
    shown_name = one_line(sanitize.storable_text(file.name or "file", _LONGEST_NAME), _LONGEST_NAME)
    with tempfile.TemporaryDirectory() as folder:
        # The path contains nothing unsafe from the sender.
        path = Path(folder) / f"{to_identifier(Path(file.name or '').stem)[:80] or 'file'}.pt2"
        with path.open("wb") as out:
            for chunk in file.chunks():
                out.write(chunk)
        recognition = recognize_file(path)
        importer = _IMPORTERS.get(recognition.use)
        try:
            if importer is None:
                raise UserError(f"this is {recognition.title}. {recognition.advice}")
            check_permission(recognition.use, person)
            return importer(Upload(path, shown_name, recognition, form, kernel_form, person))
        except UserError as error:
            line = str(error).replace(str(path), shown_name).replace(path.name, shown_name)
            raise UserError(line if shown_name in line else f"{shown_name}: {line}") from error


def check_permission(use: Use, person: AbstractBaseUser) -> None:
    """Raise ``UserError`` if the person may not import files for this use."""
    if use is Use.RESULTS and not getattr(person, "is_staff", False):
        raise UserError("only staff may import results files, which are trusted like their author")
    # Sending points to the API needs a token.
    needed = permissions.TOKENS if use is Use.POINTS else permissions.IMPORT
    if not person.has_perm(needed):  # type: ignore[attr-defined]
        raise UserError(denial(needed))


def _import_graph(upload: Upload) -> Imported:
    graph, new = graphs.import_graph(
        upload.path,
        upload.form.graph_name(),
        graphs.DEFAULT_TARGETS,
        upload.person,
        upload.form.cleaned_data["model_name"],
    )
    text = "" if new else "This graph was already imported."
    return Imported(graph.get_absolute_url(), new, text)


def _import_results(upload: Upload) -> Imported:
    suffix = {"gzip": ".gz", "xz": ".xz"}.get(upload.recognition.packing, ".json")
    path = upload.path.rename(upload.path.with_suffix(suffix))
    results = results_file.read(path, settings.API_BODY_MAX_BYTES)
    candidates = sum(len(task.candidates) for run in results.runs for task in run.tasks)
    if candidates > _MAX_CANDIDATES:
        raise UserError(
            f"{candidates} candidates are more than the {_MAX_CANDIDATES} that the page imports:"
            f" use `kiln manage import_results FILE`"
        )
    summary = result_import.record(results, upload.shown_name, upload.person, "import page")
    counts = {
        "new runs": len(summary.new),
        "runs that were imported before": summary.known,
        "points of histories": summary.points,
    }
    text = ", ".join(f"{title}: {count}" for title, count in counts.items() if count)
    url = summary.new[0].get_absolute_url() if summary.new else reverse("tuning_runs")
    return Imported(url, bool(summary.new or summary.points), f"Imported. {text.capitalize()}.")


def _import_points(upload: Upload) -> Imported:
    if upload.path.stat().st_size > settings.API_BODY_MAX_BYTES:
        limit = filesizeformat(settings.API_BODY_MAX_BYTES)
        raise UserError(f"larger than {limit}, the limit for results")
    body = upload.path.read_bytes()
    parameters = upload.form.parameters()
    context = parameters.context(timezone.now())
    values = parameters.dict()
    key = hashlib.sha256(repr(sorted(values.items())).encode() + body).hexdigest()
    receipt = ingest.receive(None, f"import page {key}", body, context, values)
    left_out = receipt["left_out"]
    points = receipt["points"]
    notes = [f"Imported {points} point{pluralize(points)} of {receipt['series']} series."]
    if left_out:
        notes.append(f"{left_out[0]['where']}: {left_out[0]['reason']}")
    if len(left_out) > 1:
        notes.append(f"{len(left_out) - 1} more parts were left out.")
    return Imported(reverse("series_list"), bool(points), " ".join(notes))


def _import_kernel(upload: Upload) -> Imported:
    kernel_form = upload.kernel_form
    if not kernel_form.is_valid():
        lines = (line for field in kernel_form.errors.values() for line in field)
        raise UserError(str(next(lines)))
    with upload.path.open("rb") as content:
        row = external_kernels.submit(
            content,
            upload.shown_name,
            kernel_form.cleaned_data["launch"],
            kernel_form.chosen(),
            upload.person,
        )
    return Imported(row.get_absolute_url())


_IMPORTERS: Mapping[Use, Callable[[Upload], Imported]] = {
    Use.GRAPH: _import_graph,
    Use.RESULTS: _import_results,
    Use.POINTS: _import_points,
    Use.KERNEL: _import_kernel,
}
