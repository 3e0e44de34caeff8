"""nginx with the configuration of deploy/nginx, before a server of the tests."""

from __future__ import annotations

import datetime
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.patience import PATIENCE_S
from tests.support.ports import free_ports

TEMPLATE = Path(__file__).resolve().parents[2] / "deploy" / "nginx" / "kiln.conf.template"
HOST = "kiln.example"
_MAIN = """\
daemon off;
{user}
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{}}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    access_log off;
    include {folder}/kiln.conf;
}}
"""


def lacking() -> str:
    """Why there is none here; "" where there is."""
    return "" if _program() else "there is no nginx: apt-get install nginx-light"


@dataclass(frozen=True)
class Proxy:
    """A running one."""

    folder: Path
    http_port: int
    https_port: int
    process: subprocess.Popen[bytes]

    def http(self) -> HTTPConnection:
        """A connection without encryption."""
        return HTTPConnection("127.0.0.1", self.http_port, timeout=PATIENCE_S)

    def https(self, of: str = "127.0.0.1") -> HTTPSConnection:
        """A connection from this address of the machine's own."""
        trusted = ssl.create_default_context(cafile=self.folder / "fullchain.pem")
        trusted.check_hostname = False  # it is reached by an address
        return HTTPSConnection(
            "127.0.0.1",
            self.https_port,
            timeout=PATIENCE_S,
            context=trusted,
            source_address=(of, 0),
        )

    def logged(self) -> str:
        """The log of all requests. nginx ends for it, since it writes a request down only after
        its answer: who has read that may be here before the line is."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(PATIENCE_S)
        return (self.folder / "access.log").read_text()


@contextmanager
def before(folder: Path, upstream: str) -> Iterator[Proxy]:
    """nginx, its files in this folder, while the block runs."""
    program = _program()
    assert program, lacking()
    folder.mkdir()
    _write_certificate(folder)
    ports = free_ports(2)
    names = {"KILN_HOST": HOST, "KILN_UPSTREAM": upstream, "KILN_TLS": str(folder)}
    text = re.sub(r"\$\{(\w+)\}", lambda name: names[name[1]], TEMPLATE.read_text())
    text = re.sub(r"^ *listen \[::\]:.*\n", "", text, flags=re.M)
    for standard, port in zip((80, 443), ports, strict=True):
        text = re.sub(rf"\blisten {standard}\b", f"listen 127.0.0.1:{port}", text)
    text = text.replace("/var/log/nginx/", f"{folder}/")
    (folder / "kiln.conf").write_text(text)
    main = folder / "nginx.conf"
    main.write_text(_MAIN.format(folder=folder, user="user root;" * (os.geteuid() == 0)))
    command = [program, "-c", str(main), "-e", "stderr"]
    said = subprocess.run([*command, "-t"], check=False, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    with (folder / "said").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log)
    try:
        _wait_for(ports[0], process, folder / "said")
        yield Proxy(folder, *ports, process)
    finally:
        process.terminate()
        process.wait()


def _program() -> str | None:
    return shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")


def _wait_for(port: int, process: subprocess.Popen[bytes], said: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, said.read_text()
        assert time.monotonic() < deadline, said.read_text()
        time.sleep(0.01)


def _write_certificate(folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = (
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "privkey.pem").write_bytes(key.private_bytes(*plain))
    (folder / "fullchain.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
