"""Finding the revision that changed a series, by requests to its senders."""
