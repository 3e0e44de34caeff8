"""Reads about series and alerts that several pages share."""
