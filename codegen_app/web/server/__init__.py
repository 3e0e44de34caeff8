"""The web server: gunicorn's processes, waitress's connections, and limits on requests."""
