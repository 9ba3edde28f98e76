"""Tenants as actors: which of them run here, and each from its opening to its end."""
