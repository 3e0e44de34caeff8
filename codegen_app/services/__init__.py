"""All writes: each service is one transaction, and calls the engine where work is needed."""
