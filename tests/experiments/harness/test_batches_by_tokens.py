"""Batches whose results are stored together: at least so many items, or as many as fill a few passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from shannon_game.experiments.harness.language_models import StoreSettings, batches_by_tokens, open_work


@pytest.mark.parametrize(
    ("lengths", "given", "tokens", "expected"),
    [
        # 4 passes of 10 tokens hold 13 texts of 3
        ([3] * 30, None, 10, [13, 13, 4]),
        ([4] * 20, None, 10, [10, 10]),
        # of long texts there are 8, whatever they hold
        ([100] * 20, None, 10, [8, 8, 4]),
        ([100] * 8 + [3] * 13, None, 10, [8, 13]),
        ([3] * 30, 2, 10, [2] * 15),
        ([3] * 9, None, None, [8, 1]),
        ([], None, 10, []),
    ],
)
def test_sizes_by_hand(
    lengths: list[int], given: int | None, tokens: int | None, expected: list[int], tmp_path: Path
) -> None:
    work = open_work(StoreSettings(store=tmp_path, items_per_batch=given))
    found = batches_by_tokens(lambda item: item, work, tokens)(lengths)
    assert [len(batch) for batch in found] == expected
    assert sorted(at for batch in found for at in batch) == list(range(len(lengths)))
    flat = [lengths[at] for batch in found for at in batch]
    assert flat == sorted(lengths, reverse=True)
