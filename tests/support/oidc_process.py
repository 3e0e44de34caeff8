"""``python -m tests.support.oidc_process PORT``: an OpenID provider over loopback.

Strict as real ones are: the client's id and secret, the redirect's address, PKCE (S256 alone),
codes that serve once. ``/next`` sets what it says of the next people, and how it misbehaves.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import sys
import time
from typing import Any
from urllib.parse import urlencode

from flask import Flask, Response, jsonify, redirect, request
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from werkzeug.serving import make_server

HOST = "127.0.0.1"
CLIENT, SECRET = "kiln", "the client's secret"
PERSON = {
    "sub": "248289761001",
    "preferred_username": "ada",
    "email": "ada@team.example",
    "email_verified": True,
    "groups": ["kernel-team"],
}


def make(issuer: str) -> Flask:
    """The provider's addresses."""
    app = Flask("provider")
    key = RSAKey.generate_key(2048, {"kid": "first", "use": "sig", "alg": "RS256"})
    other = RSAKey.generate_key(2048, {"kid": "first", "use": "sig", "alg": "RS256"})
    codes: dict[str, dict[str, str]] = {}
    tokens: dict[str, dict[str, Any]] = {}
    says: dict[str, Any] = {}  # what differs from PERSON, and faults

    @app.post("/next")
    def set_next() -> Response:
        says.clear()
        says.update(request.get_json())
        return jsonify({})

    @app.get("/.well-known/openid-configuration")
    def configuration() -> Response:
        return jsonify(
            {
                "issuer": says.get("configured_issuer", issuer),
                "authorization_endpoint": f"{issuer}/authorize",
                "token_endpoint": f"{issuer}/token",
                "userinfo_endpoint": f"{issuer}/userinfo",
                "jwks_uri": f"{issuer}/keys",
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "code_challenge_methods_supported": ["S256"],
            }
        )

    @app.get("/keys")
    def keys() -> Response:
        return jsonify(KeySet([key]).as_dict(private=False))

    @app.get("/authorize")
    def ask() -> str:
        return (
            '<!doctype html><title>Provider</title><h1>Provider</h1><form method="post">'
            "<button>Continue as ada</button></form>"
        )

    @app.post("/authorize")
    def authorize() -> Any:
        given = request.args
        assert given["response_type"] == "code"
        assert given["client_id"] == CLIENT
        assert given["code_challenge_method"] == "S256"
        assert "openid" in given["scope"].split()
        answer = {"state": given["state"]}
        if "error" in says:
            answer["error"] = says["error"]
        else:
            answer["code"] = secrets.token_urlsafe(16)
            codes[answer["code"]] = dict(given)
        return redirect(f"{given['redirect_uri']}?{urlencode(answer)}")

    @app.post("/token")
    def token() -> Any:
        begun = codes.pop(request.form.get("code", ""), None)
        digest = hashlib.sha256(request.form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        who = request.authorization
        known = who is not None and (who.username, who.password) == (CLIENT, SECRET)
        if not known:
            return jsonify({"error": "invalid_client"}), 401
        if (
            begun is None
            or not hmac.compare_digest(begun["code_challenge"], challenge)
            or begun["redirect_uri"] != request.form.get("redirect_uri")
        ):
            return jsonify({"error": "invalid_grant"}), 400
        person = PERSON | says.get("person", {})
        now = int(time.time()) + says.get("clock", 0)
        times = {"iat": now, "exp": now + 300}
        claims = {"iss": issuer, "aud": CLIENT, "nonce": begun["nonce"], **times, **person}
        claims |= says.get("claims", {})
        for name in says.get("drop", ()):
            claims.pop(name)
        algorithm = says.get("alg", "RS256")
        signer: Any = other if says.get("other_key") else key
        header = {"alg": algorithm, "kid": "first"}
        made = jwt.encode(header, claims, signer, algorithms=[algorithm])
        access = secrets.token_urlsafe(16)
        tokens[access] = person
        answer = {"access_token": access, "token_type": "Bearer", "expires_in": 300}
        return jsonify(answer if says.get("no_id_token") else answer | {"id_token": made})

    @app.get("/userinfo")
    def userinfo() -> Any:
        person = tokens[request.headers["Authorization"].removeprefix("Bearer ")]
        return jsonify(person | says.get("userinfo", {}))

    return app


if __name__ == "__main__":
    port = int(sys.argv[1])
    server = make_server(HOST, port, make(f"http://{HOST}:{port}"), threaded=True)
    sys.stdout.write("serves\n")
    sys.stdout.flush()
    server.serve_forever()
