"""Oracle as a source, by the driver's documentation. Not verified against a server."""
