"""``+exp=surprisal``: surprisal of every word and token of texts, and their sums (table 1 of the paper)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pydantic import Field

from shannon_game.estimators.documents import ClusteredMean, unit_loss
from shannon_game.estimators.documents.corpus import scores_of_documents
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.estimators.perplexity import perplexity_of_loss
from shannon_game.estimators.word_spans import has_unspaced
from shannon_game.experiments.documents.pseudo import PseudoRow, pseudo_tables
from shannon_game.experiments.documents.scored import Joined, after, apart, join_texts, of_shared_text
from shannon_game.experiments.documents.splits import split_contrasts, split_summary
from shannon_game.experiments.documents.words import REGION_COLUMNS, first_words, region_table, word_figure, word_tables
from shannon_game.experiments.harness import figures
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.csv_tables import InParts
from shannon_game.experiments.harness.figures import Series, player_colours, player_label
from shannon_game.experiments.harness.language_models import (
    SMOLLM2,
    GeneratedSettings,
    Generator,
    chosen_generator,
    open_work,
)
from shannon_game.experiments.harness.marks import light_grid, titled
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.harness.questions import INTERVAL_SE
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import Seeded, rng_for, rows_of
from shannon_game.experiments.harness.text_models import AnyModel, EndpointSettings
from shannon_game.experiments.studies.documents.texts import text_study
from shannon_game.experiments.studies.parsing import some_of
from shannon_game.inference.lm.engine import open_engine
from shannon_game.inference.lm.scored import Flat, Scored, Scoring
from shannon_game.inference.lm.stored import Work
from shannon_game.inference.progress import stage
from shannon_game.inference.settings import Count, Text
from shannon_game.inference.store.keys import result_key

AtLeastTwo = Annotated[int, Field(ge=2)]

PANELS = {
    "perplexity": "perplexity,\nexp of the mean loss",
    "mean_sequence_perplexity": "perplexity,\nmean over documents",
    "top1_accuracy": "top-1 accuracy",
}
"""Numbers that the figure shows, and their labels."""


class SurprisalRow(column.Row):
    """One model and split; intervals are normal ones of 90% over documents."""

    model: str = column.key("model", players=True)
    split: str = column.key("split of the texts")
    n_documents: int = column.context("documents")
    n_tokens: int = column.context("tokens scored")
    loss_nats: float = column.estimate("mean loss per token", unit="nats", se="loss_se_nats")
    perplexity: float = column.headline("exp of the mean loss", scale="log", interval="perplexity_{}")
    mean_sequence_perplexity: float = column.estimate(
        "mean perplexity of the documents", interval="mean_sequence_perplexity_{}"
    )
    top1_accuracy: float = column.estimate("share of tokens guessed first", interval="top1_accuracy_{}")
    bits_per_byte: float = column.estimate("loss per byte", unit="bits")
    bos: str = column.detail("token before each text")
    window: int = column.detail("tokens seen at once")
    stride: int = column.detail("tokens from one window to the next")
    n_words: int = column.context("words of the tokens scored")
    n_characters: int = column.context("characters of the tokens scored")
    n_bytes: int = column.context("UTF-8 bytes of the tokens scored")
    bits_per_token: float = column.detail("loss_nats in bits", unit="bits")
    loss_nats_per_word: float = column.detail("loss per word", unit="nats")
    bits_per_word: float = column.detail("loss per word", unit="bits")
    loss_nats_per_character: float = column.detail("loss per character", unit="nats")
    bits_per_character: float = column.estimate("loss per character", unit="bits", se="bits_per_character_se")
    loss_nats_per_byte: float = column.detail("loss per byte", unit="nats")
    revision: str = column.detail("revision of the model")


_SUMS = {
    "n_tokens": "tokens scored",
    "n_words": "words of the tokens scored",
    "n_characters": "characters of the tokens scored",
    "n_bytes": "UTF-8 bytes of the tokens scored",
    "n_best": "tokens that were the model's best guess",
    "total_loss_nats": "sum of -ln q over the tokens",
    "total_entropy_nats": "sum of the entropies at the tokens",
}
_EVERYTHING = "every split"
_CHAT = "experiment.chat"
_TOKENS_KEPT = 1 << 18
"""Most tokens whose tables are made once, and stay in memory until they are written."""
# standard errors from the estimate to its bounds
_BOUNDS = {"_lower": -INTERVAL_SE, "_upper": INTERVAL_SE}


class ScoringSettings(EndpointSettings):
    """How texts are scored under language models."""

    generator: Generator = Field(default_factory=lambda: SMOLLM2)
    """The model that is scored where none is named."""
    window: AtLeastTwo | None = None
    """Tokens that a model sees at once; null: as many as it takes."""
    stride: Count | None = None
    """Tokens from one window to the next; null: half a window."""
    boundaries: Literal["script", "spaces"] = "script"
    """What stands between words: white space, or spaces alone in texts of Chinese, Japanese, Thai, Lao, Burmese or
    Khmer as well, whose words ICU finds otherwise (extra words)."""
    prefix: Text | None = None
    """What stands before every text, a space between them, and is not scored."""
    chat: bool = False
    """Put the prefix as the user's turn into the model's own chat template, and score the texts as its answer."""

    def chosen_models(self) -> Mapping[str, AnyModel]:
        """The models named, else the generator."""
        if self.models:
            return self.models
        chosen = chosen_generator(GeneratedSettings(generator=self.generator))
        return {chosen.name: chosen}


class SurprisalSettings(Seeded, ScoringSettings):
    n_documents: Count | None = None
    """Documents, drawn at random; null takes all."""
    max_tokens: AtLeastTwo | None = None
    """Tokens of a document that are scored, from its beginning; null scores all."""
    words: bool = True
    """Write words.csv and tokens.csv, a row per word and token under each model; false for large corpora."""
    method: Literal["causal", "pll", "pll_original"] = "causal"
    """causal: each token given those before it. Of masked models: pll, the pseudo-log-likelihood of each token given
    all others but those after it in its word (Kauf and Ivanova 2023); pll_original: given all others (Salazar et al.
    2020)."""
    context: Literal["sentence", "text"] = "sentence"
    """What each text of the study is scored given: nothing, or the texts of its group before it (``group_field``
    of the study)."""
    characters: Literal["all", "shared"] = "all"
    """all: every token that a model can score; shared: of each document the characters from the first to the last place
    at which every model has the end of a token, so that the losses of models with different tokenizers are of exactly
    the same text."""


@experiment(SurprisalSettings, reads=text_study, row=SurprisalRow)
def surprisal(study: xr.Dataset, settings: SurprisalSettings) -> ExperimentResult:
    """Surprisal of every word and token of texts under language models, and loss and perplexity of the whole.

    ``words.csv`` (:data:`~shannon_game.experiments.documents.words.WORD_COLUMNS`) has a row per word with its
    probability up to its end, ``tokens.csv`` a row per token, the table a row per model and
    split, ``splits.csv`` the differences between splits.

    Examples
    --------
    >>> from shannon_game import surprisal
    >>> result = surprisal(["Rain fell.", "Nobody moved."], models=["tiny"])
    >>> result.tables["words"]["word"].tolist()
    ['Rain', 'fell.', 'Nobody', 'moved.']
    """
    if settings.method != "causal":
        return _pseudo(study, settings)
    models = settings.chosen_models()
    work = open_work(settings)
    chosen = _chosen(settings, study, work)
    texts = study["text"].to_numpy()[chosen].tolist()
    splits = study["split"].to_numpy()[chosen].astype(str)
    groups = _groups(study, settings, chosen)
    joined = None if groups is None else join_texts(texts, groups)
    before = None if settings.prefix is None else [settings.prefix] * len(texts)
    documents = study["document"].to_numpy()[chosen]
    names = list(map(str, documents))
    if joined is not None:
        names = [some_of([names[at] for at in whole.document], 1) for whole in joined]
    how: dict[str, Any] = {"names": names, "settings": settings, "max_tokens": settings.max_tokens}
    how |= {"has_words": settings.words, "prefixes": before, "joined": joined}
    scored = {name: scored_by(work, name, its, texts, **how) for name, its in models.items()}
    name = str(study.attrs.get("name", "documents"))
    figures_, tables, said, n_lost = dict[str, Figure](), dict[str, pd.DataFrame](), "", 0
    if settings.words:
        make = _word_parts(scored, study, documents, texts, settings.boundaries)
        found = _of_words(make(), settings.boundaries)
        figures_["surprisal"] = word_figure(found.first, name, found.column, n_words=found.n_first)
        said = found.said
    if settings.characters == "shared":
        scored, n_lost = of_shared_text(scored, texts, settings.boundaries)
    rows = [row for name, found in scored.items() for row in _rows(name, found, splits)]
    table = SurprisalRow.table(rows)
    contrasts = split_contrasts(table, whole=_EVERYTHING)
    tables |= {} if contrasts.empty else {"splits": contrasts}
    return ExperimentResult(
        table=table,
        tables=InParts(make, found.sizes, tables, found.like) if settings.words else tables,
        dataset=_dataset(scored, documents, splits),
        figures={**figures_, "losses": loss_figure(table, name)},
        text=said + _summary(table, scored, settings, work) + split_summary(contrasts),
        warnings=_warnings(scored, settings, work, n_lost),
    )


def _chosen(settings: SurprisalSettings, study: xr.Dataset, work: Work) -> NDArray[np.intp]:
    n_there = study.sizes["document"]
    chosen = np.arange(n_there)
    if settings.n_documents is not None:
        if settings.n_documents > n_there:
            raise InputError(f"is {settings.n_documents}, but there are {n_there} documents", field="n_documents")
        chosen = np.sort(rng_for(settings.seed, "documents").choice(n_there, settings.n_documents, replace=False))
    keys = [result_key(text) for text in study["text"].to_numpy()[chosen].tolist()]
    mine = work.mine(keys)
    if not mine.size:
        raise InputError(f"holds none of the {len(keys)} documents; take fewer shards", field="shard")
    return chosen[mine].astype(np.intp)


def scored_by(
    work: Work,
    name: str,
    its: AnyModel,
    texts: Sequence[str],
    *,
    names: Sequence[str],
    settings: ScoringSettings,
    prefixes: Sequence[str] | None = None,
    max_tokens: int | None = None,
    has_words: bool = False,
    joined: Sequence[Joined] | None = None,
) -> Scored:
    """Scores of all texts under one model, each alone or after the texts or the prefix that it is `joined` to."""
    turns = prefixes if settings.chat else None
    if settings.chat and turns is None:
        raise InputError(f"is true, and the user's turn is missing: {Set('experiment.prefix')} says it", field=_CHAT)
    if prefixes is not None and not settings.chat:
        joined = after(prefixes, texts)
    limits = {"max_tokens": max_tokens, "window": settings.window, "stride": settings.stride}
    how = Scoring(names, settings.boundaries, has_words, turns=turns, **limits)
    found = open_engine(name, its).scored(work, [one.text for one in joined] if joined else texts, how)
    if prefixes is not None and found.n_long:
        note = f"{found.n_long} documents are longer than its window: words at their ends do not see the prefix"
        found = replace(found, notes=(*found.notes, note))
    return apart(found, joined, settings.boundaries) if joined else found


def _pseudo(study: xr.Dataset, settings: SurprisalSettings) -> ExperimentResult:
    if not settings.models:
        raise InputError(f"is {settings.method!r}, which needs masked models", field=Set("experiment.method"))
    default = SurprisalSettings()
    for name in ("max_tokens", "window", "stride", "characters", "context", "words", "prefix", "chat"):
        if getattr(settings, name) != getattr(default, name):
            problem = f"is {getattr(settings, name)!r}, which is for method=causal alone"
            raise InputError(problem, field=f"experiment.{name}")
    work = open_work(settings)
    chosen = _chosen(settings, study, work)
    table, tables, warnings = pseudo_tables(
        work,
        settings.models,
        study["document"].to_numpy()[chosen],
        study["text"].to_numpy()[chosen].tolist(),
        method=settings.method,
        boundaries=settings.boundaries,
        regions=_regions(study) if "region_start" in study else None,
    )
    as_given = in_given(study)
    tables = {name: as_given(its) for name, its in tables.items()}
    sums = tables["documents"].pivot_table(index="model", columns="document", values="pll_nats", sort=False)
    said = "; ".join(
        f"{row.pll_nats:.2f} nats for {row.model} (pseudo-perplexity {row.pseudo_perplexity:.1f} per token)"
        for row in rows_of(table)
    )
    what = "each word's later tokens masked with it" if settings.method == "pll" else "one token masked at a time"
    return ExperimentResult(
        table=table,
        tables=tables,
        row=PseudoRow,
        dataset=xr.DataArray(sums, name="pll_nats", attrs={"units": "nats"}).to_dataset(),
        figures={
            "pll": word_figure(tables["words"], str(study.attrs.get("name", "")), "pll_bits", "pseudo-log-likelihood")
        },
        text=f"**The pseudo-log-likelihood of all texts is {said}**, with {what}. It is no log-probability of a text: "
        f"do not compare it with a causal model's. {work.said()}",
        warnings=tuple(warnings),
    )


def _groups(study: xr.Dataset, settings: SurprisalSettings, chosen: NDArray[np.intp]) -> list[str] | None:
    if settings.prefix is not None and (settings.context == "text" or (settings.max_tokens and not settings.chat)):
        problem = "stands before every text: leave out context=text and max_tokens, which count from there"
        raise InputError(problem, field=Set("experiment.prefix"))
    if settings.context == "sentence":
        return None
    if "group" not in study:
        problem = f"is 'text', and the study does not say which rows are one text: {Set('study.group_field', 'NAME')}"
        raise InputError(problem, field=Set("experiment.context"))
    if settings.n_documents is not None or settings.shard is not None:
        problem = "is 'text', which needs all rows of a text; leave out n_documents and shard"
        raise InputError(problem, field=Set("experiment.context"))
    return list(map(str, study["group"].to_numpy()[chosen]))


def _word_parts(
    scored: Mapping[str, Scored], study: xr.Dataset, documents: NDArray[Any], texts: Sequence[str], boundaries: str
) -> Callable[[], Iterable[dict[str, pd.DataFrame]]]:
    """What makes tables of words, tokens and regions, part by part; those of few tokens are kept."""
    as_given = in_given(study)
    regions = _regions(study) if "region_start" in study else None
    by_name = {} if regions is None else dict(zip(documents, texts, strict=True))

    n_tokens = sum(its.scores["logprob"].items.size for its in scored.values())

    def make() -> Iterator[dict[str, pd.DataFrame]]:
        n_done = 0
        with stage("tables: tokens", n_tokens) as show:
            for part in word_tables(scored, documents, texts, boundaries):
                n_done += len(part["tokens"])
                if regions is not None:
                    own = regions[regions["document"].isin(part["words"]["document"].unique())]
                    found = region_table(part["words"], part["tokens"], own, by_name, "surprisal_nats")
                    found["surprisal_bits"] = found["surprisal_nats"] / np.log(2)
                    found["sum_bits"] = found["tokens_sum"] / np.log(2)
                    part["regions"] = found[list(REGION_COLUMNS)]
                yield {name: as_given(its) for name, its in part.items()}
                show(n_done)

    if n_tokens > _TOKENS_KEPT:
        return make
    made = list(make())
    return lambda: made


def in_given(study: xr.Dataset) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Let ``start`` and ``stop`` of a table be characters of the texts as they were given, with their line ends."""
    if "given" not in study:
        return lambda table: table
    given = zip(study["document"].to_numpy(), study["given"].to_numpy(), strict=True)
    # the line breaks of each text of which a carriage return was taken out
    breaks = {name: [at.start() - n for n, at in enumerate(re.finditer("\r\n", text))] for name, text in given}

    def shifted(table: pd.DataFrame) -> pd.DataFrame:
        pairs = {what: zip(table["document"], table[what], strict=True) for what in ("start", "stop") if what in table}
        return table.assign(
            **{what: [at + np.searchsorted(breaks[name], at) for name, at in its] for what, its in pairs.items()}
        )

    return shifted


def _regions(study: xr.Dataset) -> pd.DataFrame:
    at, start, stop = (study[f"region_{name}"].to_numpy() for name in ("document", "start", "stop"))
    texts = study["text"].to_numpy()[at]
    found = pd.DataFrame({"document": study["document"].to_numpy()[at], "start": start, "stop": stop})
    found["region"] = [text[a:b] for text, a, b in zip(texts, start, stop, strict=True)]
    return found.assign(region_num=found.groupby("document").cumcount() + 1)


def _rows(name: str, scored: Scored, splits: NDArray[Any]) -> list[dict[str, Any]]:
    split_of = splits[scored.document]
    groups = {part: np.flatnonzero(split_of == part) for part in dict.fromkeys(split_of.tolist())}
    groups |= {_EVERYTHING: np.arange(len(split_of))} if len(groups) > 1 else {}
    sums = _sums(scored)
    return [
        _row(name, part, scored, {what: its[which] for what, its in sums.items()}) for part, which in groups.items()
    ]


def _row(name: str, part: str, scored: Scored, sums: Mapping[str, NDArray[np.float64]]) -> dict[str, Any]:
    total, n_words, n_characters, n_bytes = (
        sums[what] for what in ("total_loss_nats", "n_words", "n_characters", "n_bytes")
    )
    own = [sums[what][sums["n_tokens"] > 0] for what in ("total_loss_nats", "n_tokens", "n_best")]
    scores = scores_of_documents(*own, n_bytes=float(n_bytes.sum()))
    loss = scores.loss_nats
    row: dict[str, Any] = {"model": name, "split": part, "n_documents": scores.n_documents, "n_tokens": scores.n_tokens}
    row |= {"loss_nats": loss.mean, "loss_se_nats": loss.se, "bits_per_token": loss.mean / np.log(2)}
    row |= {"perplexity": scores.perplexity_of_token_mean, "bits_per_byte": scores.bits_per_byte}
    row |= {f"perplexity{end}": perplexity_of_loss(loss.mean + n * loss.se) for end, n in _BOUNDS.items()}
    row |= _with_bounds("mean_sequence_perplexity", scores.mean_sequence_perplexity)
    # an n-gram model is not asked for its best word
    is_ranked = not np.isnan(scored.scores["rank"].items).all()
    row |= _with_bounds("top1_accuracy", scores.top1_accuracy if is_ranked else ClusteredMean(np.nan, np.nan))
    row["mean_sequence_perplexity_lower"] = max(row["mean_sequence_perplexity_lower"], 1.0)
    row |= {name: getattr(scored, name) for name in ("bos", "window", "stride", "revision")}
    for unit, n in (("word", n_words), ("character", n_characters), ("byte", n_bytes)):
        found = unit_loss(total, n)
        row |= {f"n_{unit}s": int(n.sum()), f"loss_nats_per_{unit}": found.nats.mean}
        if unit != "byte":
            row |= {f"bits_per_{unit}": found.bits.mean, f"bits_per_{unit}_se": found.bits.se}
    return row


def _sums(scored: Scored) -> dict[str, NDArray[np.float64]]:
    """Numbers of :data:`_SUMS` by row."""
    logprob, best, entropy = (scored.scores[name] for name in ("logprob", "is_best", "entropy_nats"))
    is_known = ~np.isnan(logprob.items)
    of_known = {"n_tokens": is_known, "total_loss_nats": np.where(is_known, -logprob.items, 0)}
    return {
        **{name: Flat(values, logprob.bounds).summed() for name, values in of_known.items()},
        **dict(zip(("n_words", "n_characters", "n_bytes"), scored.units.T, strict=True)),
        "n_best": best.summed(),
        "total_entropy_nats": entropy.summed(),
    }


def _with_bounds(name: str, found: ClusteredMean) -> dict[str, float]:
    return {name: found.mean, **{f"{name}{end}": found.mean + n * found.se for end, n in _BOUNDS.items()}}


def _dataset(scored: Mapping[str, Scored], names: NDArray[Any], splits: NDArray[Any]) -> xr.Dataset:
    """Sums by model and document, from which every number of the table follows."""
    shape = (len(scored), len(names))
    sums = {name: np.zeros(shape) for name in _SUMS}
    for m, its in enumerate(scored.values()):
        for name, values in _sums(its).items():
            sums[name][m, its.document] = values
    found = xr.Dataset({"split": ("document", splits.astype(object))}, {"model": list(scored), "document": names})
    for name, values in sums.items():
        is_loss = name.endswith("_nats")
        attrs = {"long_name": _SUMS[name], **({"units": "nats"} if is_loss else {})}
        found[name] = ("model", "document"), values if is_loss else values.astype(np.int64), attrs
    return found


def _warnings(scored: Mapping[str, Scored], settings: SurprisalSettings, work: Work, n_lost: int) -> tuple[str, ...]:
    found = []
    if n_lost:
        why = "the models share fewer than two places in them, or a tokenizer changes their text"
        found.append(f"{n_lost} documents were left out: {why} ({Set('experiment.characters', 'shared')})")
    for name, its in scored.items():
        found += [f"{name}: {note}" for note in its.notes]
        n_changed = sum(not places.size for places in its.places)
        if n_changed:
            found.append(f"{name}: a token of {n_changed} documents goes on in the next, whose words have no surprisal")
        starts = {other.bos == "none" for other in scored.values()}
        if len(starts) > 1 and its.bos == "none" and settings.characters == "all":
            found.append(f"{name} has no BOS token to score first tokens after: set {Set(f'models.{name}.bos')}")
    if work.shard is not None:
        found.append(
            f"these are the documents of shard {work.shard.index}/{work.shard.count} alone; when all shards are done, "
            f"the same without {Set('experiment.shard')} computes nothing and shows all"
        )
    return tuple(found)


@dataclass(frozen=True)
class _Words:
    """What the report says of all words."""

    said: str
    column: str
    """Surprisal, or the plain sum over tokens where a model cannot say that a word ends."""
    first: pd.DataFrame
    """The words that the figure shows."""
    n_first: int
    """Words under the first model."""
    sizes: dict[str, int]
    """Rows of each table."""
    like: dict[str, pd.DataFrame]
    """Rows of each table whose columns have the types of the whole."""


def _of_words(parts: Iterable[Mapping[str, pd.DataFrame]], boundaries: str) -> _Words:
    counts, first, sizes = list[pd.DataFrame](), pd.DataFrame(), Counter[str]()
    like = dict[str, pd.DataFrame]()
    n_plain, columns = 0, ["surprisal_bits", "sum_bits"]
    for part in parts:
        words = part["words"]
        first = first_words(pd.concat([first, first_words(words)], ignore_index=True))
        own = words.groupby("model", sort=False)[columns]
        counts.append(own.count().join(own.sum().add_suffix("_sum")).assign(n=len(words)))
        n_plain += int(words["word"].map(has_unspaced).sum()) if boundaries == "script" else 0
        sizes.update({name: len(table) for name, table in part.items()})
        # a row of each part decides what type the whole has; a slice of Arrow's texts would keep all of the part
        one = {name: table.iloc[[0]] if len(table) else table for name, table in part.items()}
        like |= {name: pd.concat([like.get(name), row]) for name, row in one.items()}
    total = pd.concat(counts).groupby(level=0, sort=False).sum()
    column = "surprisal_bits" if total["surprisal_bits"].all() else "sum_bits"
    known = total[total[column] > 0]
    means = zip(known.index, known[f"{column}_sum"] / known[column], known[column], strict=True)
    said = "; ".join(f"{mean:.2f} bits for {model} ({n:,} words)" for model, mean, n in means)
    n_without = int(sizes["words"] - total[column].sum())
    why = "a token is of two words, the model does not know one, or nothing comes before it"
    without = f" {n_without:,} words have none: {why}." if n_without else ""
    plain = f" {n_plain:,} words are of scripts without spaces: they have the sum over their tokens." if n_plain else ""
    sums = " Sums over tokens alone: a model does not tell how probable the end of a word is."
    said = f"**The mean surprisal of a word is {said}.**{sums * (column == 'sum_bits')}{without}{plain}\n\n"
    return _Words(said, column, first, int(total["n"].iloc[0]), dict(sizes), like)


def _summary(table: pd.DataFrame, scored: Mapping[str, Scored], settings: SurprisalSettings, work: Work) -> str:
    whole = table.drop_duplicates("model", keep="last")
    said = "; ".join(_of_model(row) for row in rows_of(whole))
    compare = (
        f"All models score the same {whole['n_characters'].iloc[0]:,} characters: compare their bits per character."
        if settings.characters == "shared"
        else "Models with different tokenizers have losses of different tokens: compare their bits per byte, or score "
        f"the same characters ({Set('experiment.characters', 'shared')})."
    )
    starts = "; ".join(f"{its.bos} under {name}" for name, its in scored.items())
    done = f" {work.said()}".rstrip()
    costs = "".join(f" {its.said}" for its in scored.values() if its.said)
    bounds = "Intervals in the table are of 90%, over documents."
    return f"**The loss is {said}.** Before each text stands {starts}. {compare} {bounds}{done}{costs}"


def _of_model(row: Any) -> str:
    best = "" if np.isnan(row.top1_accuracy) else f"top-1 accuracy {row.top1_accuracy:.1%}, "
    said = f"(perplexity {row.perplexity:.1f}, {best}{row.bits_per_byte:.3f} bits per byte)"
    return f"{row.loss_nats:.3f} nats per token for {row.model} {said}"


@styled
def loss_figure(table: pd.DataFrame, title: str = "documents") -> Figure:
    """Both perplexities and the top-1 accuracy of every model and split, with 90% intervals."""
    one_split = len(set(table["split"])) == 1
    labels = [
        player_label(model) + ("" if one_split else f", {split}")
        for model, split in zip(table["model"], table["split"], strict=True)
    ]
    rows = table.assign(label=labels, colour=table["model"].map(player_colours(list(dict.fromkeys(table["model"])))))
    both = [name for name in PANELS if "perplexity" in name]
    for name in both:
        # no perplexity is below 1, whatever its standard error says
        rows[f"{name}_lower"] = rows[f"{name}_lower"].clip(lower=1)
    ends = figures.finite_range(*(rows[f"{name}{end}"] for name in both for end in ("", "_lower", "_upper")))
    fig = figures.new_figure(7.4, 1.3 + 0.32 * len(rows))
    for axes, (name, label) in zip(fig.subplots(1, 3, sharey=True), PANELS.items(), strict=True):
        figures.forest(axes, rows, [Series(name, f"{name}_lower", f"{name}_upper", size=5)])
        axes.set_xlabel(label)
        if name in both:
            # both on one scale; a narrow panel has room for few numbers
            figures.log_perplexity_axis(axes, "x", *ends, least=3)
        else:
            light_grid(axes, "x")
    titled(fig, f"Language models on {title} (bars: 90% over documents)", size=10)
    return fig
