"""How much is measured."""

import os
from typing import Final

ROWS: Final = int(os.environ.get("FETCHER_BENCH_ROWS", "1000000"))
"""Of ten mixed columns, in each database. Fewer say less: what a job costs apart from its rows then
counts, and the usual way needs less memory.
"""

TABLE: Final = "mixed_rows" if ROWS == 1_000_000 else f"mixed_rows_{ROWS}"

LARGE_ROWS: Final = int(os.environ.get("FETCHER_BENCH_LARGE_ROWS", "256"))
LARGE_ROW_BYTES: Final = 1024 * 1024
LARGE_TABLE: Final = "large_rows"

SCHEMA_TABLES: Final = 5_000
"""Ten columns each."""
