"""The programs' way in: ``/api/v1``, by token."""
