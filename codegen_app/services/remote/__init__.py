"""Workers without the database: joined by a token, a task in hand at a time."""
