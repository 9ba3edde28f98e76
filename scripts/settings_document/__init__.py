"""docs/settings.md and the examples of config, made from the settings themselves."""
