"""Search by typed text: rows, names that the engine knows, pages, actions."""
