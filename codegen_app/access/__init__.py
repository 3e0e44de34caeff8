"""Who comes in, from where, and how often they may try."""
