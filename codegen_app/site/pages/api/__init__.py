"""The API's documentation."""
