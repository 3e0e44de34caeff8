"""A bundle's kernel in the form that an instruction-emulating device loads."""

from __future__ import annotations

from pathlib import Path

from scheduler.build.recipe import recipe_of
from scheduler.bundle.reader import Bundle
from scheduler.codegen import bundle_paths
from scheduler.errors import UserError
from scheduler.runtime.isa_device import EmulatedKernel, is_emulated
from scheduler.targets import find


def emulated_kernel(bundle: Bundle, kernel: str, target: str) -> EmulatedKernel:
    """Return the kernel's listing and its function's launches. Raises ``UserError`` if the bundle
    has no listing for the target."""
    entry = bundle.manifest.kernels[kernel]
    listing = recipe_of(find(target), Path(entry.source).name).listing_file
    path = bundle.folder / bundle_paths.build_folder(kernel, target) / listing
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise UserError(
            f"{bundle.folder} has no listing of {kernel} for {target}: compile the model "
            f"for {target} too"
        ) from None
    return EmulatedKernel(
        target, text, entry.symbol, entry.args, entry.launches, entry.workspace_bytes
    )


def library_for(bundle: Bundle, kernel: str, target: str, device: str, folder: Path) -> Path:
    """Return the file that the device loads for a kernel: the bundle's library, or for an
    instruction-emulating device a file of ``EmulatedKernel``, written to ``folder``.

    Raises ``UserError`` if the bundle has no build or no listing for the target.
    """
    library = bundle.library(kernel, target)
    if not is_emulated(device):
        return library
    file = folder / f"{kernel}.json"
    file.write_text(emulated_kernel(bundle, kernel, target).to_json())
    return file
