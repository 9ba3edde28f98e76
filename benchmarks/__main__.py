"""``make bench``: every figure as a JSON line, beside its peer from the same run."""

from benchmarks import postgresql

if __name__ == "__main__":
    postgresql.main()
