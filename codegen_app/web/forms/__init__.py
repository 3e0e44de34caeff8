"""Forms and fields that several pages share."""
