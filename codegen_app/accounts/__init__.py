"""Authentication, client addresses, and the limits of attempts."""
