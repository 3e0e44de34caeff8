"""The pages of rules by patterns."""
