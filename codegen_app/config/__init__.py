"""Settings, URLs, the queue, and the way in for servers."""
