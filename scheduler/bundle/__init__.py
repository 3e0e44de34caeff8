"""The hand-over format: a folder that any HIP launcher can use (schema.json beside this file)."""
