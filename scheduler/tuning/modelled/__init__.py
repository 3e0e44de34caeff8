"""Tuning by modelled times: no GPU, worker processes that run the model, and a cache of results."""
