"""Nothing is left when a job is cut at any of its steps."""
