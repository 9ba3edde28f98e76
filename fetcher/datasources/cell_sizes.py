"""What a statement of ours gives in place of a row with a cell that is too large."""


def place_of_largest(sizes: bytes, count: int) -> int | None:
    """Of the ``count`` cells whose sizes are told, with commas between them; None where a server
    tells something else."""
    digits = sizes.split(b",")
    if len(digits) != count or not all(each.isdigit() and len(each) < 20 for each in digits):
        return None
    told = [int(each) for each in digits]
    return told.index(max(told))
