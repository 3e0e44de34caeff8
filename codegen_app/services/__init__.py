"""All writes: each service is one transaction, and calls the engine where there is work to do."""
