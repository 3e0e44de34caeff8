"""The pages of notification channels."""
