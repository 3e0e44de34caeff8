"""What people send: the parameters of pages and of changes, one file a subject."""
