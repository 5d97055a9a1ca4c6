"""Ranks of the tokens of texts, asked of an OpenAI-compatible endpoint (``model=[api]``)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from shannon_game.estimators.documents.study import document_tokens
from shannon_game.estimators.errors import InputError, require_packages
from shannon_game.estimators.messages import Set
from shannon_game.estimators.rankings import validate_ranking_study
from shannon_game.experiments.harness.registry import EXTRAS
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.experiments.rankings.ranks.settings import RanksSettings
from shannon_game.inference.progress import stage


def ask(study: xr.Dataset, settings: RanksSettings) -> xr.Dataset | ExperimentResult:
    """Draw places, ask the endpoint, and give a ranking study; or what it would cost, where only that is asked for."""
    if len(settings.models) != 1:
        raise InputError(f"texts need one endpoint to rank tokens: {Set('model', ['api'])}", field=Set("model"))
    require_packages(EXTRAS["api"], "api", source="ranks of texts")
    from shannon_game.inference.api.scoring import estimate_cost, score_windows  # noqa: PLC0415 - the extra api

    windows = _windows(settings, study)
    endpoint = next(iter(settings.models.values()))
    if settings.estimate_only:
        estimate = estimate_cost(windows, endpoint)
        table = pd.DataFrame([vars(estimate)])
        return ExperimentResult(table=table, dataset=xr.Dataset.from_dataframe(table), figures={}, text=_told(estimate))
    with stage("tokens", announced=True) as show:
        return validate_ranking_study(score_windows(windows, endpoint, settings.store, before=_say, progress=show))


def _say(estimate: Any, ledger: Any) -> None:
    sys.stderr.write(f"{_told(estimate)}; the store has {ledger.n_answers} answers, ${ledger.most_usd:.4f}\n")


def _told(estimate: Any) -> str:
    return (
        f"{estimate.n_calls_least} to {estimate.n_calls_most} calls, "
        f"${estimate.usd_least:.4f} to ${estimate.usd_most:.4f} without what is stored"
    )


def _windows(settings: RanksSettings, study: xr.Dataset) -> list[Any]:
    from shannon_game.inference.api.scoring import TextWindow  # noqa: PLC0415 - the extra api

    lengths = sorted(set(settings.lengths))
    n_windows, n_tokens = settings.n_windows, settings.n_tokens
    tokens = _tokens(settings.tokenizer, study)
    places = [
        (document, start)
        for document, its in enumerate(tokens)
        for start in range(lengths[-1], len(its) - n_tokens + 1, n_tokens)
    ]
    if len(places) < n_windows:
        there = f"the texts have {len(places)} places with {lengths[-1]} tokens before and {n_tokens} after"
        fix = "use longer texts, shorter lengths or fewer windows"
        raise InputError(f"is {n_windows}, but {there}; {fix}", field="n_windows")
    drawn = rng_for(settings.seed, "places").choice(len(places), size=n_windows, replace=False)
    names = study["document"].to_numpy()
    return [
        TextWindow(
            text=str(names[document]),
            name=f"token {start}",
            context=tuple(tokens[document][start - length : start]),
            reference=tuple(tokens[document][start : start + n_tokens]),
            sliding=settings.window == "sliding",
        )
        for length in lengths
        for document, start in (places[at] for at in sorted(drawn.tolist()))
    ]


def _tokens(tokenizer: str, study: xr.Dataset) -> list[list[str]]:
    texts = [str(text) for text in study["text"].to_numpy()]
    if tokenizer == "study":
        return [document_tokens(study, at) for at in range(len(texts))]
    kind, _, name = tokenizer.partition(":")
    package, cut = {"tiktoken": ("tiktoken", _by_tiktoken), "file": ("tokenizers", _by_file)}.get(kind, ("", None))
    if cut is None or not name:
        raise InputError(
            f"is {tokenizer!r}, should be study, tiktoken:ENCODING or file:TOKENIZER.json", field="tokenizer"
        )
    if find_spec(package) is None:
        raise InputError(f"is {tokenizer!r}, which needs the package {package}", field="tokenizer")
    try:
        of_text = cut(name)
    except Exception as error:
        # an unknown name, no way to the place from which it is loaded, or a file that is no tokenizer
        raise InputError(f"is {tokenizer!r}, which gives no tokenizer: {error}", field="tokenizer") from None
    return [of_text(text) for text in texts]


def _by_tiktoken(name: str) -> Callable[[str], list[str]]:
    import tiktoken  # noqa: PLC0415 - one way of several to cut a text

    encoding = tiktoken.get_encoding(name)
    return lambda text: _whole([encoding.decode_single_token_bytes(token) for token in encoding.encode_ordinary(text)])


def _by_file(name: str) -> Callable[[str], list[str]]:
    from tokenizers import Tokenizer  # noqa: PLC0415

    loaded = Tokenizer.from_str(Path(name).read_text(encoding="utf-8"))
    return lambda text: [text[a:b] for a, b in _joined(loaded.encode(text, add_special_tokens=False).offsets)]


def _whole(pieces: list[bytes]) -> list[str]:
    """Tokens that hold a part of a character only are joined with the next ones: a string cannot hold half of one."""
    found, waiting = [], b""
    for piece in pieces:
        waiting += piece
        try:
            found.append(waiting.decode("utf-8"))
        except UnicodeDecodeError:
            continue
        waiting = b""
    return found


def _joined(offsets: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans without gaps or overlap, from those of a tokenizer (parts of one character share its span)."""
    ends = list(dict.fromkeys(end for _, end in offsets))
    return list(zip([0, *ends[:-1]], ends, strict=True))
