"""The common part of the printers of every language: lines and their marks, indices, value
trees."""
