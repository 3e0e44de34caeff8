"""Settings, URLs, the queue, and the entry points for servers."""
