"""What spans all subjects: URLs, overview, search, periodic jobs, metrics, backups, the demo."""
