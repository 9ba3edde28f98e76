"""Whatever bytes come: each decoder reads them or refuses them, in its documented way."""
