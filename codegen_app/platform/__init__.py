"""What the site runs on: settings, files, the database, the broker."""
