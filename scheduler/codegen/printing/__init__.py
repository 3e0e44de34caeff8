"""What the printers of every language share: lines and their marks, indices, value trees."""
