"""The command `fetcher`."""

from fetcher.cli import main

if __name__ == "__main__":
    main()
