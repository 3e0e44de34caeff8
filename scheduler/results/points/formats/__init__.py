"""Other tools' files of results, accepted as they are: pure functions, one tool a file."""
