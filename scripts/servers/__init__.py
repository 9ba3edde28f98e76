"""The parts of ``scripts/services.py``: finding, starting, installing and stopping test servers.

Standard library only, because it runs before anything is installed.
"""
