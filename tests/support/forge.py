"""GitHub and GitLab for a client in CI: one server that keeps check runs, commit statuses and
comments, and refuses what the real ones refuse (their API references of 2026)."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

APP, USER, READ_ONLY, PROJECT = "ghs_app", "ghp_user", "ghs_fork", "glpat-project"
_CONCLUSIONS = {
    *("action_required", "cancelled", "failure", "neutral", "success", "skipped", "timed_out"),
}
_INTEGRATION = "Resource not accessible by integration"
_USERS = {
    APP: {"login": "github-actions[bot]", "type": "Bot"},
    READ_ONLY: {"login": "github-actions[bot]", "type": "Bot"},
    USER: {"login": "ann", "type": "User"},
    PROJECT: {"id": 77, "username": "project_1_bot"},
}


class AnswerError(Exception):
    """A request that the forge refuses."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers


def require(condition: object, message: str, status: int = 422) -> None:
    if not condition:
        raise AnswerError(status, message)


@dataclass
class Forge:
    """What a forge has stored. ``limited`` requests are refused first, for their rate."""

    commits: set[str] = field(default_factory=set)
    checks: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[dict[str, Any]] = field(default_factory=list)
    comments: list[dict[str, Any]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    limited: int = 0
    url: str = ""

    def answer(self, method: str, path: str, query: dict[str, str], token: str, body: Any) -> Any:
        """Return status and content of the answer to a request. Raises ``AnswerError``."""
        require(token in _USERS, "Bad credentials", 401)
        if self.limited:
            self.limited -= 1
            headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}
            raise AnswerError(403, "API rate limit exceeded", **headers)
        routes = {
            "GET /user": self._user,
            "POST /repos/team/app/check-runs": self._check_run,
            "POST /repos/team/app/statuses/(?P<sha>[0-9a-f]+)": self._github_status,
            "GET /repos/team/app/issues/12/comments": self._list,
            "POST /repos/team/app/issues/12/comments": self._add,
            "PATCH /repos/team/app/issues/comments/(?P<number>[0-9]+)": self._change,
            "POST /projects/1/statuses/(?P<sha>[0-9a-f]+)": self._gitlab_status,
            "GET /projects/1/merge_requests/12/notes": self._list,
            "POST /projects/1/merge_requests/12/notes": self._add,
            "PUT /projects/1/merge_requests/12/notes/(?P<number>[0-9]+)": self._change,
        }
        for route, handle in routes.items():
            if match := re.fullmatch(route, f"{method} {path}"):
                if method != "GET":
                    require(token != READ_ONLY, _INTEGRATION, 403)
                return handle(token, {**query, **match.groupdict()}, body)
        raise AnswerError(404, "Not Found")

    def _user(self, token: str, *_: Any) -> Any:
        require(token not in (APP, READ_ONLY), _INTEGRATION, 403)
        return 200, _USERS[token]

    def _check_run(self, token: str, _: Any, body: dict[str, Any]) -> Any:
        require(token == APP, "You must authenticate via a GitHub App.", 403)
        require(body.get("name") and body.get("head_sha") in self.commits, "No commit found")
        require(body.get("status") != "completed" or body.get("conclusion"), "conclusion")
        require(body.get("conclusion") in _CONCLUSIONS, "conclusion is not included in the list")
        require(body["details_url"].startswith(("http://", "https://")), "details_url")
        output = body.get("output", {})
        require(output.get("title") and "summary" in output, "output: title and summary")
        require(len(output["summary"]) <= 65_535, "summary is too long")
        self.checks.append(body)
        return 201, {"id": len(self.checks), **body}

    def _github_status(self, _: str, path: dict[str, str], body: dict[str, Any]) -> Any:
        require(path["sha"] in self.commits, f"No commit found for SHA: {path['sha']}")
        require(body.get("state") in {"error", "failure", "pending", "success"}, "state")
        require(len(body.get("description", "")) <= 140, "description is too long")
        self.statuses.append({"sha": path["sha"], **body})
        return 201, body

    def _gitlab_status(self, token: str, path: dict[str, str], body: dict[str, Any]) -> Any:
        require(token == PROJECT, "insufficient_scope", 403)
        require(path["sha"] in self.commits, "404 Commit Not Found", 404)
        states = {"pending", "running", "success", "failed", "canceled", "skipped"}
        require(body.get("state") in states, "state does not have a valid value", 400)
        require(len(body.get("description", "")) <= 255, "description is too long", 400)
        self.statuses.append({"sha": path["sha"], **body})
        return 201, body

    def _list(self, _: str, query: dict[str, str], __: Any) -> Any:
        size, page = int(query.get("per_page", 30)), int(query.get("page", 1))
        require(size <= 100, "per_page")
        return 200, self.comments[size * (page - 1) : size * page]

    def _add(self, token: str, _: Any, body: dict[str, Any]) -> Any:
        self._check_body(token, body)
        self.comment(body["body"], token)
        return 201, self.comments[-1]

    def _change(self, token: str, path: dict[str, str], body: dict[str, Any]) -> Any:
        self._check_body(token, body)
        (comment,) = [one for one in self.comments if one["id"] == int(path["number"])]
        comment["body"] = body["body"]
        return 200, comment

    def _check_body(self, token: str, body: dict[str, Any]) -> None:
        require(body.get("body"), "body can't be blank")
        limit = 1_000_000 if token == PROJECT else 65_536
        require(len(body["body"]) <= limit, f"body is too long (maximum is {limit} characters)")

    def comment(self, body: str, token: str) -> None:
        """Add a comment by the user of a token."""
        user = _USERS[token]
        self.comments.append(
            {"id": len(self.comments) + 1, "body": body, "user": user, "author": user}
        )


@contextmanager
def forge_server() -> Iterator[Forge]:
    """A forge on a free port of the loopback."""
    forge = Forge()

    class Handler(BaseHTTPRequestHandler):
        def handle_request(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            parts = urlsplit(self.path)
            query = {name: texts[0] for name, texts in parse_qs(parts.query).items()}
            bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
            token = bearer or self.headers.get("PRIVATE-TOKEN", "")
            forge.requests.append(f"{self.command} {parts.path}")
            headers: dict[str, str] = {}
            try:
                status, content = forge.answer(self.command, parts.path, query, token, body)
            except AnswerError as error:
                status, content, headers = error.status, {"message": str(error)}, error.headers
            data = json.dumps(content).encode()
            self.send_response(status)
            for name, text in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_PUT = handle_request  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    forge.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield forge
    finally:
        server.shutdown()
        server.server_close()
