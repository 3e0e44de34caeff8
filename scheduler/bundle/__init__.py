"""The output format: a folder that any HIP launcher can use (schema.json in this folder)."""
