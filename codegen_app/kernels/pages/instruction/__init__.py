"""The page of an instruction."""
