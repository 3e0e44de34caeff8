"""``python -m tests.support.s3_process PORT REQUESTS``: moto's S3, with all that it had.

The requests in the file are played back before the first is taken: who asks meanwhile is refused,
not answered by an S3 that has forgotten. One request at a time, so that each is noted whole.
"""

from __future__ import annotations

import os
import sys
import threading
import urllib.request
from pathlib import Path

HOST = "127.0.0.1"


def main(port: int, record: Path) -> None:
    """Serve until killed."""
    known = record.exists()
    os.environ |= {"MOTO_ENABLE_RECORDING": "true", "MOTO_RECORDER_FILEPATH": str(record)}
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    app = DomainDispatcherApplication(create_backend_app)
    if known:
        first = make_server(HOST, 0, app, threaded=True)  # it asks itself
        threading.Thread(target=first.serve_forever, daemon=True).start()
        address = f"http://{HOST}:{first.port}/moto-api/recorder/replay-recording"
        with urllib.request.urlopen(urllib.request.Request(address, method="POST")) as answer:
            assert answer.status == 200
        first.shutdown()
    server = make_server(HOST, port, app)
    sys.stdout.write("serves\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
