"""Makes docs/types.md: what each column type of each database becomes in a result.

    python -m scripts.types_document

Its examples are the rows of tests/golden/types, which tests execute; its families of types are the
connectors' own.
"""
