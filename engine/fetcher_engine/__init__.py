"""The rules of extraction."""
