"""Finding anything by what is typed: rows, names that the engine knows, pages, actions."""
