"""First tokens in place of words (appendix D of "Predict the Next Word"), by the authors' files or a vocabulary."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.cloze.calibration_error import expected_calibration_error
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.papers.provo.quirks import words_as_written
from shannon_game.experiments.papers.provo.stored import Floats, Items, StoredLists, without_word

_TVD = "cal_metrics_bpe/TVD_per_instance/tvd_{}_human"
_ENTROPY = "cal_metrics_bpe/Entropy_difference_per_instance/ent_diff_{}_human"
_KL = "cal_metrics_bpe/KL_Divergenece_per_instance"
_ORACLES = {
    "dis_1": "oracle1",
    "dis_2": "oracle2",
    "boot_1": "oracle1 with replacement",
    "boot_2": "oracle2 with replacement",
}
# where the other files have a context twice, these lists have another one that is not there
_OTHER_CONTEXTS = ("3", "13", "36")
_SIZE = 20


def token_results(
    study: xr.Dataset, vocabulary: Path | None
) -> tuple[dict[str, tuple[Floats, Items]], dict[str, float]]:
    """Compute distances and entropies of tokens, by stored list, and calibration errors.

    Tokens are by the authors' files where the study has them, or else by a vocabulary; GPT-2's own values need the
    files.
    """
    stored, words = StoredLists(study), words_as_written(study)
    if _TVD.format("oracle_dis_1") not in stored.names or (vocabulary is None and "word_token" not in study):
        return {}, {}
    items = stored.items(_TVD.format("oracle_dis_1"))
    counts = without_word(words.answers().take(items), words.blank)
    first = _file_tokens(study, words.strings) if vocabulary is None else _first_tokens(words.strings, vocabulary)
    model = _ModelTokens(study) if "word_token" in study else None
    starts = np.searchsorted(counts.context, np.arange(len(items) + 1))
    names = [name.format(f"oracle_{one}") for name in (_TVD, _ENTROPY) for one in _ORACLES]
    if model is not None:
        names += [_TVD.format("model"), _ENTROPY.format("model"), _KL]
    lists = {name: (np.full(len(items), np.nan), items) for name in names}
    tops: dict[str, list[tuple[float, bool]]] = {}
    for at, item in enumerate(items.tolist()):
        rows = slice(starts[at], starts[at + 1])
        token, count = first[counts.word[rows]], counts.count[rows]
        if (token < 0).any():
            continue
        # of words that share their first token the code keeps the last one's share
        everyone = dict(zip(token.tolist(), (count / count.sum()).tolist(), strict=True))
        majority = token[np.argmax(count)]
        for one, drawn in drawn_oracles(np.repeat(token, count).tolist()).items():
            share = {name: number / len(drawn) for name, number in Counter(drawn).items()}
            lists[_TVD.format(f"oracle_{one}")][0][at] = _distance(share, everyone)
            lists[_ENTROPY.format(f"oracle_{one}")][0][at] = abs(_entropy(share) - _entropy(everyone))
            top = min(share, key=lambda name: (-share[name], name))
            tops.setdefault(_ORACLES[one], []).append((share[top], top == majority))
        if model is not None and not np.isnan(model.entropy[item]):
            logprob = {name: model.logprob[item, name] for name in everyone}
            q = {name: float(np.exp(its)) for name, its in logprob.items()}
            lists[_TVD.format("model")][0][at] = _distance(q, everyone) + 0.5 * (1 - sum(q.values()))
            lists[_ENTROPY.format("model")][0][at] = abs(model.entropy[item] - _entropy(everyone))
            lists[_KL][0][at] = sum(p * (np.log(p) - logprob[name]) for name, p in everyone.items())
            sure = float(np.exp(model.top_logprob[item]))
            tops.setdefault("gpt2", []).append((sure, model.top[item] == majority))
    # errors are of all contexts, or not known
    errors = {
        f"ece/appendix D/{player}/human": expected_calibration_error(*zip(*pairs, strict=True), bins="legacy").ece
        for player, pairs in tops.items()
        if len(pairs) == len(items)
    }
    others = np.isin(study["text_id"].to_numpy()[items].astype(str), _OTHER_CONTEXTS)
    for values, _ in lists.values():
        values[others] = np.nan
    return lists, errors


class _ModelTokens:
    """GPT-2's entropy, likeliest token, and log-probabilities of people's tokens, by item."""

    def __init__(self, study: xr.Dataset) -> None:
        names = ("token_entropy", "token_top", "token_top_logprob")
        self.entropy, self.top, self.top_logprob = (study[name].to_numpy() for name in names)
        of, token = study["response_item"].to_numpy(), study["word_token"].to_numpy()
        rows = zip(
            np.searchsorted(study["item"].to_numpy(), of).tolist(),
            token[study["response_word"].to_numpy()].tolist(),
            strict=True,
        )
        self.logprob = dict(zip(rows, study["response_token_logprob"].to_numpy().tolist(), strict=True))


def _file_tokens(study: xr.Dataset, words: NDArray[np.object_]) -> Items:
    of = dict(zip(study["word_text"].to_numpy().tolist(), study["word_token"].to_numpy().tolist(), strict=True))
    return np.array([of.get(word, -1) for word in words.tolist()], dtype=np.intp)


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


def _first_tokens(words: NDArray[np.object_], vocabulary: Path) -> Items:
    from tokenizers import Tokenizer  # noqa: PLC0415 - the extra lm

    try:
        tokenizer = Tokenizer.from_file(str(vocabulary))
    except Exception as error:
        raise InputError(f"is no tokenizer: {error}", source=vocabulary, field="vocabulary") from None
    encoded = (tokenizer.encode(f" {word}", add_special_tokens=False) for word in words.tolist())
    return np.array([one.ids[0] for one in encoded], dtype=np.intp)
