"""Tuning by modelled times: no GPU, worker processes that model, a cache of what they said."""
