"""A page that is in no file of ours, made by the recipe of ARCHITECTURE.md."""
