"""Workers without the database: joined by a token, with one task at a time."""
