"""Workers that measure for a server over HTTPS, without its database and without an open port."""
