"""``+exp=word_ranks``: the rank of the next word among whole words, so that no tokenizer decides what is ranked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from pydantic import Field

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.documents.corpus import clustered_mean
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.estimators.rankings.ranks import rank_at
from shannon_game.estimators.rankings.scores import average_score, reciprocal_score, top_k_accuracy
from shannon_game.experiments.harness import language_models
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.figures import player_colours, player_label
from shannon_game.experiments.harness.marks import named, number_ticks
from shannon_game.experiments.harness.questions import bullets, one_panel
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import Seeded, rng_for
from shannon_game.experiments.harness.tables import table_variables
from shannon_game.inference.lm.engine import EngineBase, open_engine
from shannon_game.inference.lm.stored import Work
from shannon_game.inference.settings import Count, Names

EVERYTHING = "all"
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
# a word after a space, which the model is asked for, and what comes before it
_PLACE = re.compile(r"(?<=\S) ([^\W\d_]+(?:['\u2019][^\W\d_]+)*)(?=[\s.,;:!?]|$)")


class WordRanksRow(column.Row):
    """One model and split; errors are clustered by document."""

    model: str = column.key("model", players=True)
    split: str = column.key("split of the texts")
    n_places: int = column.context("places")
    n_documents: int = column.context("documents")
    n_candidates: int = column.context("words that are ranked")
    average: float = column.estimate("mean of four scores, not ranked beyond top_k", se="average_se")
    reciprocal: float = column.estimate("mean reciprocal rank", se="reciprocal_se")
    top1_accuracy: float = column.headline("share of words ranked first", se="top1_accuracy_se")
    loss_nats: float = column.estimate("loss of the word among the candidates", unit="nats", se="loss_se_nats")
    median_rank: float = column.estimate("median rank")


class WordRanksSettings(Seeded, language_models.StoreSettings):
    models: language_models.Engines = Field(
        default_factory=lambda: {language_models.SMOLLM2.name: language_models.SMOLLM2}
    )
    """Language models that run, by name; on the command line model=[smollm2,...]."""
    places: Literal["random", "last"] = "random"
    """random: words drawn at random from all texts; last: the last word of every text, as the answer of a question."""
    n_places: Count = 40
    """Places that are drawn."""
    context_words: Count = 60
    """Words before a drawn place that a model sees; before a last word it sees the whole text."""
    n_candidates: Count = 100
    """Words that are ranked: the most frequent ones of the texts, and the words asked for."""
    candidates: Names | None = None
    """Rank these words instead, such as the possible answers of a question; the words asked for are added."""
    top_k: Count = 20
    """Ranks beyond it count as not ranked in the scores, as in the lists of an API."""


@experiment(WordRanksSettings, row=WordRanksRow)
def word_ranks(study: xr.Dataset, settings: WordRanksSettings) -> ExperimentResult:
    """Rank the next word of texts among whole words, by every model.

    A row per model and split, and one of all splits. ``items.csv`` has every place with its rank. Where the texts have
    controls, ``controls.csv`` has what a text adds to its control by every score: `gain`, and `effect`, the gain in
    standard deviations of the pairs.
    """
    if not settings.models:
        raise InputError(f"names no model; add {Set('model', ['smollm2'])}", field=Set("model"))
    places = _places(study, settings)
    candidates = _candidates(study, settings, places["word"].tolist())
    work = language_models.open_work(settings)
    found = []
    for name, chosen in settings.models.items():
        logprob = _scores(work, open_engine(name, chosen), places["context"].tolist(), candidates)
        found.append(_ranked(name, places, logprob, [candidates.index(word) for word in places["word"]]))
    rows = pd.concat(found, ignore_index=True)
    parts = [(name, *part) for name, own in rows.groupby("model", sort=False) for part in _parts(own)]
    table = pd.DataFrame([_row(str(name), split, its, settings.top_k, len(candidates)) for name, split, its in parts])
    controls = _controls(study, rows, settings.top_k)
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset(WordRanksRow.variables(table, "row") | table_variables(rows.add_prefix("place_"), "place")),
        figures={"word_ranks": word_ranks_figure(rows, len(candidates), str(study.attrs.get("name", "")))},
        text=_summary(table, controls, work, len(candidates)),
        tables={"items": rows} | ({} if controls.empty else {"controls": controls}),
    )


def _places(study: xr.Dataset, settings: WordRanksSettings) -> pd.DataFrame:
    texts = [str(text) for text in study["text"].to_numpy()]
    found = []
    for document, text in enumerate(texts):
        matches = list(_PLACE.finditer(text))
        matches = matches[-1:] if settings.places == "last" else matches[settings.context_words :]
        found += [(document, match.start(), match.group(1)) for match in matches]
    if settings.places == "random":
        if len(found) < settings.n_places:
            there = f"the texts have {len(found)} words with {settings.context_words} before them"
            fix = "use longer texts, fewer context_words or fewer places"
            raise InputError(f"is {settings.n_places}, but {there}; {fix}", field="n_places")
        drawn = rng_for(settings.seed, "places").choice(len(found), size=settings.n_places, replace=False)
        found = [found[at] for at in sorted(drawn.tolist())]
    if not found:
        raise InputError("have no word after another", source=f"study {study.attrs.get('name')!r}", field="text")
    before = [texts[document][:start] for document, start, _ in found]
    contexts = [_last_words(text, settings.context_words) if settings.places == "random" else text for text in before]
    of = [document for document, _, _ in found]
    names = {name: study[name].to_numpy()[of].astype(str) for name in ("document", "split")}
    return pd.DataFrame({**names, "context": contexts, "word": [word for _, _, word in found]})


def _last_words(text: str, n_words: int) -> str:
    starts = [match.start() for match in re.finditer(r"\S+", text)]
    return text[starts[-n_words] :] if len(starts) > n_words else text.lstrip()


def _candidates(study: xr.Dataset, settings: WordRanksSettings, targets: list[str]) -> list[str]:
    if settings.candidates is not None:
        odd = next((word for word in settings.candidates if not _WORD.fullmatch(word)), None)
        if odd is not None:
            raise InputError(f"{odd!r} is no single word", field="candidates")
        words = list(settings.candidates)
    else:
        count = Counter(word for text in study["text"].to_numpy() for word in _WORD.findall(str(text)))
        # by count, then by name, so that the order of the texts decides nothing
        words = sorted(count, key=lambda word: (-count[word], word))[: settings.n_candidates]
    return list(dict.fromkeys([*words, *targets]))


def _scores(work: Work, engine: EngineBase, contexts: Sequence[str], candidates: Sequence[str]) -> FloatArray:
    _, lost = engine.writable({word: [word] for word in candidates})
    if lost:
        problem = f"has no tokens for {lost[0]!r}; leave it out of candidates"
        raise InputError(problem, source=f"model {engine.name!r}")
    found = engine.word_log_probs(work, contexts, [candidates] * len(contexts), alone=True)
    return np.stack([np.asarray(row, dtype=float) for row in found["logprob"]])


def _ranked(name: str, places: pd.DataFrame, logprob: FloatArray, target: list[int]) -> pd.DataFrame:
    own = logprob[np.arange(len(target)), target]
    rows = places[["document", "split", "word"]].assign(
        # as many words as are more probable, plus one
        rank=1 + (logprob > own[:, None]).sum(axis=1),
        logprob_nats=own,
        logprob_of_candidates_nats=own - np.logaddexp.reduce(logprob, axis=1),
    )
    rows.insert(0, "model", name)
    return rows


def _parts(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    splits = [(str(name), its) for name, its in rows.groupby("split", sort=False)]
    return [(EVERYTHING, rows)] if len(splits) == 1 else [(EVERYTHING, rows), *splits]


def _controls(study: xr.Dataset, rows: pd.DataFrame, top_k: int) -> pd.DataFrame:
    """What a text adds to its control, by model, split and score; nothing where the study has no controls."""
    if not {"rules_pair", "is_control"} <= {*study.data_vars}:
        return pd.DataFrame()
    of = study[["rules_pair", "is_control"]].to_dataframe().set_index(study["document"].to_numpy().astype(str))
    rank = rows["rank"].to_numpy(dtype=float)
    scores = {"top1_accuracy": top_k_accuracy(rank, 1), "reciprocal": reciprocal_score(rank)}
    scores["average"] = average_score(rank_at(rank, top_k), top_k)
    its = rows.assign(**scores).join(of[["rules_pair", "is_control"]], on="document").set_index(["model", "rules_pair"])
    names = [*scores, "logprob_of_candidates_nats", "logprob_nats"]
    texts, controls = its[~its["is_control"]], its[its["is_control"]]
    gains = (texts[names] - controls[names]).assign(split=texts["split"])
    long = gains.reset_index().melt(["model", "rules_pair", "split"], var_name="score", value_name="its")
    by_score = long.groupby(["model", "split", "score"], sort=False)["its"]
    found = by_score.agg(n_pairs="count", gain="mean", std="std").reset_index()
    found["gain_se"] = found["std"] / np.sqrt(found["n_pairs"])
    found["effect"] = found["gain"] / found["std"].where(found["std"] > 0)
    return found.drop(columns="std")


def _row(name: str, split: str, rows: pd.DataFrame, top_k: int, n_candidates: int) -> dict[str, Any]:
    rank, document = rows["rank"].to_numpy(dtype=float), rows["document"].to_numpy()
    row: dict[str, Any] = {"model": name, "split": split, "n_places": len(rows), "n_documents": len(set(document))}
    row["n_candidates"] = n_candidates
    scores = {"average": average_score(rank_at(rank, top_k), top_k), "reciprocal": reciprocal_score(rank)}
    for score, values in (scores | {"top1_accuracy": top_k_accuracy(rank, 1)}).items():
        found = clustered_mean(values, document)
        row |= {score: found.mean, f"{score}_se": found.se}
    loss = clustered_mean(-rows["logprob_of_candidates_nats"].to_numpy(dtype=float), document)
    return {**row, "loss_nats": loss.mean, "loss_se_nats": loss.se, "median_rank": float(np.median(rank))}


def _summary(table: pd.DataFrame, controls: pd.DataFrame, work: Work, n_candidates: int) -> str:
    line = (
        "**{label} ranks the right word first in {top1_accuracy:.0%} of {n_places:,} places** ({split}). The average "
        "score is {average:.3f} (se {average_se:.3f}), {loss_nats:.2f} nats per word."
    )
    said = bullets(table.assign(label=table["model"].map(player_label)), line)
    if len(controls):
        wide = controls.pivot_table(["gain", "effect"], ["model", "split"], "score", sort=False)
        wide = wide.set_axis(wide.columns.map("{0[1]}_{0[0]}".format), axis=1)
        line = (
            "{model}, {split}: a text adds {average_gain:+.3f} to its control's average score "
            "({average_effect:.2f} sd of the pairs), and {logprob_of_candidates_nats_gain:+.2f} nats to its "
            "log-probability ({logprob_of_candidates_nats_effect:.2f} sd)."
        )
        said += f"\n{bullets(wide.reset_index(), line)}"
    return (
        f"{said}\n\n{n_candidates:,} whole words are "
        "ranked, the same for every model, whatever its tokenizer. A random guess is right in "
        f"{1 / n_candidates:.1%} of the places. {work.said()}"
    )


def word_ranks_figure(rows: pd.DataFrame, n_candidates: int, study_name: str = "") -> Figure:
    """Share of the places whose word is at most at a rank, a line per model and split."""
    at = np.arange(1, n_candidates + 1)
    title = "How high does the model rank the right word?"
    with one_panel(4.5, 3.9, title, study_name, grid="both") as (fig, axes):
        axes.plot(at, at / n_candidates, color="0.6", linewidth=1, linestyle=":", label="guessing")
        for name, colour in player_colours(list(dict.fromkeys(rows["model"]))).items():
            parts = list(rows[rows["model"] == name].groupby("split", sort=False))
            for (split, its), line in zip(parts, ["-", "--", "-.", ":"] * len(parts), strict=False):
                shown = player_label(name) + (f", {split}" if len(parts) > 1 else "")
                axes.ecdf(its["rank"], color=colour, linestyle=line, label=shown)
        axes.set_xscale("log")
        number_ticks(axes.xaxis, np.unique(np.geomspace(1, n_candidates, 5).round()))
        axes.set(xlim=(1, n_candidates), ylim=(0, 1.02), ylabel="share at this rank or better")
        axes.set_xlabel(f"rank among {n_candidates:,} words")
        named(fig, axes.get_legend_handles_labels()[0], 2)
    return fig
