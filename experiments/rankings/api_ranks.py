"""``+exp=api_ranks``: ranks of the tokens of texts, asked of an OpenAI-compatible endpoint (``model=api``)."""

from __future__ import annotations

import sys
from dataclasses import fields
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from omegaconf import DictConfig, OmegaConf
from tqdm import tqdm

from estimators.documents import document_tokens
from estimators.errors import InputError, unknown_choice
from estimators.rankings import score_study, validate_ranking_study
from experiments.harness.figures import STYLE, new_figure
from experiments.harness.outputs import ExperimentResult
from experiments.harness.settings import rng_for, whole_numbers
from experiments.rankings.ranks.experiment import scores_by_window
from experiments.studies.rankings.table import write_ranking_table
from inference.api.scoring import CostEstimate, TextWindow, estimate_cost, score_windows
from inference.api.settings import ApiSettings
from inference.api.store import Ledger

__all__ = ["run"]


def run(cfg: DictConfig, study: xr.Dataset) -> ExperimentResult:
    """Draw places, say what they cost, ask the endpoint, and write a ranking table."""
    settings = _settings(cfg)
    if cfg.experiment.window not in ("growing", "sliding"):
        raise unknown_choice("experiment.window", cfg.experiment.window, ("growing", "sliding"))
    if not isinstance(cfg.experiment.estimate_only, bool):
        raise InputError(
            f"is {cfg.experiment.estimate_only!r}, should be true or false", field="experiment.estimate_only"
        )
    windows = _windows(cfg, study)
    if cfg.experiment.estimate_only:
        return _estimated(estimate_cost(windows, settings))
    with tqdm(total=0, desc="tokens", unit="token", disable=None) as bar:

        def shown(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        ranking = validate_ranking_study(
            score_windows(windows, settings, Path(cfg.experiment.store), before=_say, progress=shown)
        )
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
        figures={"api_ranks": _figure(table)},
        summary=f"{ranking.sizes['token']:,} tokens, with the {ranking.sizes['rank']} best tokens each, are in "
        "`tables/ranking.csv`: `+exp=ranks study=ranking_table study.path=...` fits them. Standard errors are over "
        "windows; perplexity is approximate, a token outside the list counts as the last one's probability times e^-3.",
        files={"tables": partial(_write, ranking, by_window)},
    )


def _settings(cfg: DictConfig) -> ApiSettings:
    given = OmegaConf.to_container(cfg.models, resolve=True, throw_on_missing=True) if "models" in cfg else {}
    models = cast("dict[str, dict[str, Any]]", given)
    if len(models) != 1 or next(iter(models.values())).get("source") != "api":
        raise InputError(
            f"names {', '.join(models) or 'none'}; api_ranks takes one endpoint: model=[api]", field="model"
        )
    chosen = dict(next(iter(models.values())))
    del chosen["source"]
    known = [field.name for field in fields(ApiSettings)]
    for name in chosen:
        if name not in known:
            raise unknown_choice("setting", name, known, source="models.api")
    return ApiSettings(**chosen)


def _windows(cfg: DictConfig, study: xr.Dataset) -> list[TextWindow]:
    """Places with the longest context before them, the same for every length, without overlap of references."""
    lengths = sorted(set(whole_numbers(cfg, "lengths")))
    n_windows, n_tokens = (whole_numbers(cfg, key)[0] for key in ("n_windows", "n_tokens"))
    tokens = _tokens(str(cfg.experiment.tokenizer), study)
    places = [
        (document, start)
        for document, its in enumerate(tokens)
        for start in range(lengths[-1], len(its) - n_tokens + 1, n_tokens)
    ]
    if len(places) < n_windows:
        raise InputError(
            f"is {n_windows}, but the texts have {len(places)} places with {lengths[-1]} tokens before and {n_tokens} "
            "after; use longer texts, shorter lengths or fewer windows",
            field="experiment.n_windows",
        )
    drawn = rng_for(cfg, "places").choice(len(places), size=n_windows, replace=False)
    names = study["document"].to_numpy()
    return [
        TextWindow(
            text=str(names[document]),
            name=f"token {start}",
            context=tuple(tokens[document][start - length : start]),
            reference=tuple(tokens[document][start : start + n_tokens]),
            sliding=cfg.experiment.window == "sliding",
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
            f"is {tokenizer!r}, should be study, tiktoken:ENCODING or file:TOKENIZER.json", field="experiment.tokenizer"
        )
    if find_spec(package) is None:
        raise InputError(f"is {tokenizer!r}, which needs the package {package}", field="experiment.tokenizer")
    if kind == "tiktoken":
        import tiktoken  # noqa: PLC0415

        try:
            encoding = tiktoken.get_encoding(name)
        except ValueError as error:
            raise InputError(str(error), field="experiment.tokenizer") from None
        pieces = [[encoding.decode_single_token_bytes(i) for i in encoding.encode_ordinary(text)] for text in texts]
        return [_whole(document) for document in pieces]
    from tokenizers import Tokenizer  # noqa: PLC0415

    if not Path(name).is_file():
        raise InputError(f"is {name!r}, which does not exist", field="experiment.tokenizer")
    loaded = Tokenizer.from_file(name)
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
    return ExperimentResult(table=table, dataset=xr.Dataset.from_dataframe(table), figures={}, summary=_told(estimate))


def _write(ranking: xr.Dataset, by_window: pd.DataFrame, folder: Path) -> None:
    folder.mkdir()
    write_ranking_table(ranking, folder / "ranking.csv")
    by_window.to_csv(folder / "windows.csv", index=False, lineterminator="\n")


def _figure(table: pd.DataFrame) -> Figure:
    with mpl.rc_context(STYLE):
        fig = new_figure(4.2, 3.0)
        axes = fig.add_subplot()
        axes.errorbar(
            table["context_length"],
            table["average"],
            yerr=2 * table["average_se"],
            fmt="o-",
            color="#0072B2",
            capsize=3,
        )
        axes.set_xscale("log", base=2)
        axes.set_xticks(table["context_length"], [str(length) for length in table["context_length"]])
        axes.set_ylim(0, 1)
        axes.set_xlabel("tokens of context (log scale)")
        axes.set_ylabel("average rank score")
        axes.set_title("bars: 2 standard errors over windows", fontsize=8.5)
    return fig
