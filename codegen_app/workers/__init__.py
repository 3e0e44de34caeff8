"""The work queue (claims, leases), worker processes, and their page."""
