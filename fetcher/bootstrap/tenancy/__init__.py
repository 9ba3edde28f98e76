"""What a process with tenants opens, and what each of its tenants has of its own."""
