"""The settings by what they are about; a module a group, or two that belong together."""
