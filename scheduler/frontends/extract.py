"""Extract one model from an archive with several, as a separate archive."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from scheduler.errors import UserError
from scheduler.frontends.archive import (
    model_members,
    open_archive,
    parse_json,
    read_member,
    read_model_json,
)
from scheduler.frontends.fields import field, quote_value

_NAME_IN_NEW_ARCHIVE = "model"  # what torch.export.load looks for
#: The list of tensors of each model, and the folder that holds the tensors.
_TENSORS = {
    "data/weights": "{}_weights_config.json",
    "data/constants": "{}_constants_config.json",
}
_BYTES = 1 << 20


def extract_model(path: Path, model_name: str, out: Path) -> None:
    """Write the model of that name to ``out`` as ``torch.export.save`` would have: with its weights
    and constants, and nothing of the other models. Nothing is unpickled.

    Raises ``UserError`` as ``read_model_json`` does, and if a part is compressed or encrypted,
    which torch never does.
    """
    read_model_json(path, model_name)  # checks that it exists and is within the limits
    with open_archive(path) as archive, zipfile.ZipFile(out, "w") as new_archive:
        model = model_members(path, archive)[model_name]
        root = PurePosixPath(model.filename).parts[0]
        members = {member.filename: member for member in archive.infolist()}
        for name, new_name in _member_names(path.name, archive, root, model_name):
            if f"{root}/{name}" not in members:
                continue
            info = members[f"{root}/{name}"]
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
                raise UserError(
                    f"{path.name}: {info.filename}: compressed or encrypted members are not "
                    "supported"
                )
            with (
                archive.open(info) as source,
                new_archive.open(f"{root}/{new_name}", "w") as target,
            ):
                while part := source.read(_BYTES):
                    target.write(part)


def _member_names(
    file: str, archive: zipfile.ZipFile, root: str, model_name: str
) -> Iterator[tuple[str, str]]:
    """The members that the model needs: their names in this archive and in the new one."""
    yield f"models/{model_name}.json", f"models/{_NAME_IN_NEW_ARCHIVE}.json"
    for name in ("archive_format", "archive_version", "byteorder", ".data/version"):
        yield name, name
    yield f"data/sample_inputs/{model_name}.pt", f"data/sample_inputs/{_NAME_IN_NEW_ARCHIVE}.pt"
    for folder, config in _TENSORS.items():
        member = f"{folder}/{config.format(model_name)}"
        try:
            info = archive.getinfo(f"{root}/{member}")
        except KeyError:
            continue
        yield member, f"{folder}/{config.format(_NAME_IN_NEW_ARCHIVE)}"
        where = f"{file}: {info.filename}"
        tensors = field(parse_json(where, read_member(file, archive, info)), "config", dict, where)
        names = {field(tensor, "path_name", str, where) for tensor in tensors.values()}
        if invalid := [name for name in names if PurePosixPath(name).name != name]:
            raise UserError(f"{where}: {quote_value(invalid[0])} is not a valid member name")
        yield from ((f"{folder}/{name}", f"{folder}/{name}") for name in sorted(names))
