"""The Engine's own suite; it runs in a process of its own."""
