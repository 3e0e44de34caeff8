"""Whether a kernel became slower, and what differs between the two sides of a change."""
