"""The API's page: its OpenAPI description in reading order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scheduler.results.points import importer

_SHOWN = ("type", "enum", "minimum", "maximum", "maxLength")


@dataclass(frozen=True)
class Parameter:
    """A parameter of an operation: in the query, as a header, or a field of its JSON body."""

    name: str
    place: str
    required: bool
    kind: str
    default: str
    description: str


@dataclass(frozen=True)
class Answer:
    """A status and its meaning."""

    status: str
    description: str


@dataclass(frozen=True)
class Operation:
    """A method of an address."""

    anchor: str
    method: str
    path: str
    summary: str
    description: str
    scope: str
    parameters: tuple[Parameter, ...]
    body: str
    answers: tuple[Answer, ...]

    @property
    def says_defaults(self) -> bool:
        """Whether any parameter has a default."""
        return any(row.default for row in self.parameters)

    @property
    def says_meanings(self) -> bool:
        """Whether any parameter has a description."""
        return any(row.description for row in self.parameters)


@dataclass(frozen=True)
class ApiPage:
    """The content of the page."""

    description: str
    operations: tuple[Operation, ...]
    formats: tuple[tuple[str, str], ...]


_MEANINGS = {
    "200": "success",
    "400": "a header is missing or invalid",
    "401": "no valid token",
    "403": "the token lacks the scope, or its owner the permission",
    "404": "no such row",
    "409": "the idempotency key belongs to another request",
    "413": "the body is too large",
    "422": "the whole request is rejected; the error names the row and field",
    "429": "too many requests; retry after the time in Retry-After",
}


def api_page(schema: Mapping[str, Any]) -> ApiPage:
    """Build the page from the OpenAPI description, without a query."""
    operations = []
    for path, methods in schema["paths"].items():
        for method, part in methods.items():
            answers = (
                Answer(str(status), _MEANINGS.get(str(status), "")) for status in part["responses"]
            )
            parameters = []
            for row in part.get("parameters", ()):
                value = row["schema"]
                parameters.append(
                    Parameter(
                        name=row["name"],
                        place=row["in"],
                        required=bool(row.get("required")),
                        kind=_kind(value),
                        default=str(value.get("default", "")),
                        description=row.get("description") or value.get("description", ""),
                    )
                )
            operation = Operation(
                anchor=part["operationId"],
                method=method.upper(),
                path=path,
                summary=part.get("summary", ""),
                description=" ".join(part.get("description", "").split()),
                scope=" or ".join(name for one in part["security"] for name in one["TokenAuth"]),
                parameters=(*parameters, *_body_fields(part, schema["components"]["schemas"])),
                body=part.get("requestBody", {}).get("description", ""),
                answers=tuple(answers),
            )
            operations.append(operation)
    formats = tuple((name, reader.title) for name, reader in importer.FORMATS.items())
    return ApiPage(schema["info"]["description"], tuple(operations), formats)


def _body_fields(
    part: Mapping[str, Any], schemas: Mapping[str, Mapping[str, Any]]
) -> Iterator[Parameter]:
    """Yield the fields of a body that is described as one of ``schemas``."""
    content = part.get("requestBody", {}).get("content", {}).get("application/json", {})
    body = schemas.get(_name(content.get("schema", {})), {})
    for name, value in body.get("properties", {}).items():
        default = value.get("default")
        yield Parameter(
            name=name,
            place="body",
            required=name in body.get("required", ()),
            kind=_kind(value, schemas),
            default="" if default is None else str(default),
            description=value.get("description", ""),
        )


def _kind(value: Mapping[str, Any], schemas: Mapping[str, Mapping[str, Any]] | None = None) -> str:
    """Return the type of a value with its limits, in a few words; null is left out."""
    parts = [part for part in value.get("anyOf", [value]) if part.get("type") != "null"]
    named = [(schemas or {}).get(_name(part), part) for part in parts]
    texts = (
        ", ".join(f"{name} {part[name]}" for name in _SHOWN if name in part).removeprefix("type ")
        for part in named
    )
    return " or ".join(texts)


def _name(value: Mapping[str, Any]) -> str:
    return str(value.get("$ref", "")).rpartition("/")[2]
