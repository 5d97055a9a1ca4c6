"""``+exp=api_ranks``: ranks of the tokens of texts, asked of an OpenAI-compatible endpoint (``model=api``)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from pydantic import BeforeValidator

from shannon_game.estimators.documents import document_tokens
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from shannon_game.estimators.rankings import score_study, validate_ranking_study
from shannon_game.experiments.harness.csv_tables import write_csv
from shannon_game.experiments.harness.figures import new_figure
from shannon_game.experiments.harness.marks import titled
from shannon_game.experiments.harness.plots import bars, length_axis, styled
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import Seeded, rng_for
from shannon_game.experiments.rankings.windows import scores_by_window
from shannon_game.experiments.studies.rankings.table import write_ranking_table
from shannon_game.inference.api.scoring import CostEstimate, TextWindow, estimate_cost, score_windows
from shannon_game.inference.api.settings import ApiSettings
from shannon_game.inference.api.store import Ledger
from shannon_game.inference.progress import stage
from shannon_game.inference.settings import Count, Counts, UserPath


def _one_endpoint(models: Any) -> Any:
    if isinstance(models, Mapping):
        live = any(isinstance(its, Mapping) and its.get("source", "api") != "api" for its in models.values())
        if live or len(models) != 1:
            raise InputError(f"names {', '.join(models) or 'none'}; api_ranks takes one endpoint: model=[api]")
    return models


class ApiRanksSettings(Seeded):
    """Settings of :func:`api_ranks`."""

    models: Annotated[Mapping[str, ApiSettings], BeforeValidator(_one_endpoint)]
    """The one endpoint; on the command line model=[api] models.api.base_url=..."""
    tokenizer: str
    """The model's own tokens: study (of a documents study that has them), tiktoken:ENCODING, file:TOKENIZER.json."""
    lengths: Counts = (32, 128, 512)
    """Tokens of context before a reference token."""
    n_windows: Count = 10
    """Places in the texts, drawn at random, the same for every length."""
    n_tokens: Count = 30
    """Reference tokens at each place."""
    window: Literal["growing", "sliding"] = "growing"
    """growing: the context grows from token to token; sliding: exactly so many tokens, which leaves reuse little."""
    store: UserPath = Path("api_answers.db")
    """SQLite file with the paid answers, to go on with and never to pay twice."""
    estimate_only: bool = False
    """Say what it will cost, and ask nothing."""

    @property
    def endpoint(self) -> ApiSettings:
        """The one endpoint."""
        return next(iter(self.models.values()))


@experiment(ApiRanksSettings)
def api_ranks(study: xr.Dataset, settings: ApiRanksSettings) -> ExperimentResult:
    """Draw places, say what they cost, ask the endpoint, and write a ranking table.

    Returns
    -------
    ExperimentResult
        A row a model and length; the ranking table is among the files.
    """
    windows = _windows(settings, study)
    if settings.estimate_only:
        return _estimated(estimate_cost(windows, settings.endpoint))
    with stage("tokens", announced=True) as show:
        scored = score_windows(windows, settings.endpoint, settings.store, before=_say, progress=show)
    ranking = validate_ranking_study(scored)
    by_window = scores_by_window(ranking, score_study(ranking))
    columns = ["linear", "reciprocal", "average", "top_1", "loss_nats", "share_censored"]
    groups = by_window.groupby(["model", "context_length"])
    table = groups[columns].mean()
    table["average_se"] = groups["average"].std(ddof=1) / np.sqrt(groups.size())
    table["n_windows"] = groups.size()
    table["perplexity"] = np.exp(table["loss_nats"])
    table = table.reset_index()
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset.from_dataframe(table.set_index(["model", "context_length"])),
        figures={"api_ranks": api_ranks_figure(table)},
        text=f"{ranking.sizes['token']:,} tokens, with the {ranking.sizes['rank']} best tokens each, are in "
        "`tables/ranking.csv`: `+exp=ranks study=ranking_table study.path=...` fits them. Standard errors are over "
        "windows; perplexity is approximate, a token outside the list counts as the last one's probability times e^-3.",
        files={"tables": partial(_write, ranking, by_window)},
        warnings=tuple(f"{note['count']} x {note['text']}" for note in notes(ranking) if note["level"] == "warning"),
    )


def _windows(settings: ApiRanksSettings, study: xr.Dataset) -> list[TextWindow]:
    """Places with the longest context before them, the same for every length, without overlap of references."""
    lengths = sorted(set(settings.lengths))
    n_windows, n_tokens = settings.n_windows, settings.n_tokens
    tokens = _tokens(settings.tokenizer, study)
    places = [
        (document, start)
        for document, its in enumerate(tokens)
        for start in range(lengths[-1], len(its) - n_tokens + 1, n_tokens)
    ]
    if len(places) < n_windows:
        raise InputError(
            f"is {n_windows}, but the texts have {len(places)} places with {lengths[-1]} tokens before and {n_tokens} "
            "after; use longer texts, shorter lengths or fewer windows",
            field="n_windows",
        )
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
    """Every document in the model's tokens, as strings that joined give the text."""
    texts = [str(text) for text in study["text"].to_numpy()]
    if tokenizer == "study":
        return [document_tokens(study, at) for at in range(len(texts))]
    kind, _, name = tokenizer.partition(":")
    package = {"tiktoken": "tiktoken", "file": "tokenizers"}.get(kind)
    if package is None or not name:
        raise InputError(
            f"is {tokenizer!r}, should be study, tiktoken:ENCODING or file:TOKENIZER.json", field="tokenizer"
        )
    if find_spec(package) is None:
        raise InputError(f"is {tokenizer!r}, which needs the package {package}", field="tokenizer")
    if kind == "tiktoken":
        import tiktoken  # noqa: PLC0415 - one way of several to cut a text

        try:
            encoding = tiktoken.get_encoding(name)
        except (ValueError, OSError) as error:
            # an unknown name, or no way to the place from which it is loaded
            raise InputError(f"is {tokenizer!r}: {error}", field="tokenizer") from None
        pieces = [[encoding.decode_single_token_bytes(i) for i in encoding.encode_ordinary(text)] for text in texts]
        return [_whole(document) for document in pieces]
    from tokenizers import Tokenizer  # noqa: PLC0415

    if not Path(name).is_file():
        raise InputError(f"is {name!r}, which does not exist", field="tokenizer")
    try:
        loaded = Tokenizer.from_file(name)
    except Exception as error:
        # it raises nothing narrower
        raise InputError(f"is {name!r}, which is no tokenizer: {error}", field="tokenizer") from None
    return [[text[a:b] for a, b in _joined(loaded.encode(text, add_special_tokens=False).offsets)] for text in texts]


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


def _say(estimate: CostEstimate, ledger: Ledger) -> None:
    sys.stderr.write(f"{_told(estimate)}; the store has {ledger.n_answers} answers, ${ledger.most_usd:.4f}\n")


def _told(estimate: CostEstimate) -> str:
    return (
        f"{estimate.n_calls_least} to {estimate.n_calls_most} calls, "
        f"${estimate.usd_least:.4f} to ${estimate.usd_most:.4f} without what is stored"
    )


def _estimated(estimate: CostEstimate) -> ExperimentResult:
    table = pd.DataFrame([vars(estimate)])
    return ExperimentResult(table=table, dataset=xr.Dataset.from_dataframe(table), figures={}, text=_told(estimate))


def _write(ranking: xr.Dataset, by_window: pd.DataFrame, folder: Path) -> None:
    folder.mkdir()
    write_ranking_table(ranking, folder / "ranking.csv")
    write_csv(by_window, folder / "windows.csv")


@styled
def api_ranks_figure(table: pd.DataFrame) -> Figure:
    """Average rank score against the length of the context."""
    fig = new_figure(4.2, 3.0)
    axes = fig.add_subplot()
    middle, reach = table["average"], 2 * table["average_se"]
    bars(axes, table["context_length"], middle - reach, middle, middle + reach, color="#0072B2", linestyle="-")
    length_axis(axes, table["context_length"])
    axes.set(ylim=(0, 1), ylabel="average rank score\n(bars: 2 standard errors)")
    titled(fig, "Average rank score after more and more context")
    return fig
