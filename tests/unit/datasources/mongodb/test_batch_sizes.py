"""How many documents are asked for next."""

import pytest

from fetcher.datasources.mongodb.batch_sizes import BatchSize

MIB = 1024 * 1024


def sizes(most: int, document_bytes: int, rounds: int = 5) -> list[int]:
    """What is asked for, one time after another, of documents of one size."""
    size = BatchSize(most)
    asked = []
    for _ in range(rounds):
        asked.append(size.documents)
        size.learn(size.documents, size.documents * document_bytes)
    return asked


@pytest.mark.parametrize(
    ("document_bytes", "asked"),
    [
        (300, [2, 32, 512, 4000, 4000]),
        (2048, [2, 32, 512, 1024, 1024]),
        (MIB, [2, 2, 2, 2, 2]),
        (16 * MIB, [2, 1, 1, 1, 1]),
    ],
)
def test_an_answer_grows_to_two_mebibytes(document_bytes: int, asked: list[int]) -> None:
    assert sizes(4000, document_bytes) == asked


def test_it_shrinks_when_documents_become_larger() -> None:
    size = BatchSize(4000)
    size.learn(4000, 4000 * 300)
    assert size.documents == 4000
    size.learn(15, 15 * MIB)
    assert size.documents == 2


def test_an_empty_answer_tells_nothing() -> None:
    size = BatchSize(4000)
    size.learn(512, 512 * 300)
    size.learn(0, 0)
    assert size.documents == 4000


def test_never_more_than_the_most() -> None:
    assert BatchSize(1).documents == 1
    assert sizes(200, 10) == [2, 32, 200, 200, 200]
