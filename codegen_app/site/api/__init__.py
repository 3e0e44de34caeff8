"""The API's URLs and description."""
