"""The admin's pages."""
