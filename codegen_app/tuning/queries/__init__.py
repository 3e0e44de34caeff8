"""Reads about measurements that several pages share."""
