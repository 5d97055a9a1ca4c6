"""First tokens in place of words (appendix D of "Predict the Next Word"): its oracles, given GPT-2's vocabulary."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import xarray as xr

from shannon_game.estimators.cloze.calibration_error import expected_calibration_error
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.papers.provo.quirks import words_as_written
from shannon_game.experiments.papers.provo.stored import Floats, Items, StoredLists, without_word

_TVD = "cal_metrics_bpe/TVD_per_instance/tvd_oracle_{}_human"
_ENTROPY = "cal_metrics_bpe/Entropy_difference_per_instance/ent_diff_oracle_{}_human"
_ORACLES = {
    "dis_1": "oracle1",
    "dis_2": "oracle2",
    "boot_1": "oracle1 with replacement",
    "boot_2": "oracle2 with replacement",
}
# where the other files have a context twice, these lists have another one that is not there
_OTHER_CONTEXTS = ("3", "13", "36")
_SIZE = 20


def token_oracles(study: xr.Dataset, vocabulary: Path) -> tuple[dict[str, tuple[Floats, Items]], dict[str, float]]:
    """Compute distances and entropies of the oracles of tokens, by stored list, and their calibration errors."""
    stored, words = StoredLists(study), words_as_written(study)
    if _TVD.format("dis_1") not in stored.names:
        return {}, {}
    items = stored.items(_TVD.format("dis_1"))
    counts = without_word(words.answers().take(items), words.blank)
    first = _first_tokens([str(word) for word in words.strings], vocabulary)
    starts = np.searchsorted(counts.context, np.arange(len(items) + 1))
    lists = {name.format(one): (np.full(len(items), np.nan), items) for name in (_TVD, _ENTROPY) for one in _ORACLES}
    tops: dict[str, list[tuple[float, bool]]] = {one: [] for one in _ORACLES}
    for at in range(len(items)):
        rows = slice(starts[at], starts[at + 1])
        token, count = first[counts.word[rows]], counts.count[rows]
        # of words that share their first token the code keeps the last one's share
        everyone = dict(zip(token.tolist(), (count / count.sum()).tolist(), strict=True))
        for one, drawn in drawn_oracles(np.repeat(token, count).tolist()).items():
            share = {name: number / len(drawn) for name, number in Counter(drawn).items()}
            lists[_TVD.format(one)][0][at] = _distance(share, everyone)
            lists[_ENTROPY.format(one)][0][at] = abs(_entropy(share) - _entropy(everyone))
            top = min(share, key=lambda name: (-share[name], name))
            tops[one].append((share[top], top == token[np.argmax(count)]))
    others = np.isin(study["text_id"].to_numpy()[items].astype(str), _OTHER_CONTEXTS)
    for values, _ in lists.values():
        values[others] = np.nan
    errors = {
        f"ece/appendix D/{_ORACLES[one]}/human": expected_calibration_error(
            *zip(*pairs, strict=True), bins="legacy"
        ).ece
        for one, pairs in tops.items()
    }
    return lists, errors


def drawn_oracles(tokens: list[int]) -> dict[str, list[int]]:
    """Cut people's tokens as appendix D does: twenty and the rest, the odd one removed; two draws with replacement."""
    draw, kept = random.Random(0), list(tokens)
    if len(kept) % 2:
        kept.remove(draw.sample(kept, 1)[0])
    chosen = draw.sample(range(len(kept)), _SIZE)
    rest = set(range(len(kept))) - set(chosen)
    return {
        "dis_1": [kept[at] for at in chosen],
        "dis_2": [kept[at] for at in sorted(rest)],
        "boot_1": random.Random(0).choices(tokens, k=_SIZE),
        "boot_2": random.Random(1).choices(tokens, k=_SIZE),
    }


def _distance(one: Mapping[int, float], other: Mapping[int, float]) -> float:
    return 0.5 * sum(abs(one.get(token, 0.0) - other.get(token, 0.0)) for token in {*one, *other})


def _entropy(shares: Mapping[int, float]) -> float:
    """Entropy in nats of shares that need not sum to one."""
    return -sum(share * float(np.log(share)) for share in shares.values())


def _first_tokens(words: list[str], vocabulary: Path) -> Items:
    from tokenizers import Tokenizer  # noqa: PLC0415 - the extra lm

    try:
        tokenizer = Tokenizer.from_file(str(vocabulary))
    except Exception as error:
        raise InputError(f"is no tokenizer: {error}", source=vocabulary, field="vocabulary") from None
    return np.array([tokenizer.encode(f" {word}", add_special_tokens=False).ids[0] for word in words], dtype=np.intp)
