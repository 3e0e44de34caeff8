"""The page of a series, its points, plot and badge."""
