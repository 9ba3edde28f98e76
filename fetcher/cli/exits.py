"""How commands end, and where their tables go."""

from rich.console import Console

EXIT_FAILED = 1
EXIT_SETTINGS = 2
EXIT_REJECTED = 3
"""What was fetched is not what was sealed or signed."""
NO_TERMINAL_WIDTH = 140


def wide_console() -> Console:
    """Where nobody looks at a screen, lines may be as long as the tables want."""
    console = Console()
    return console if console.is_terminal else Console(width=NO_TERMINAL_WIDTH)
