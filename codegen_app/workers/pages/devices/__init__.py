"""The page of workers, devices and environments."""
