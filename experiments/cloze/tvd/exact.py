"""Distance of live models' next words from people's, with the models' exact probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shannon_game.estimators.cloze import (
    Distributions,
    StudyWords,
    WordRules,
    cloze_items,
    count_words,
    normalise_words,
    relative_frequencies,
    study_words,
    total_variation,
    tvd_exact,
)
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_labels
from shannon_game.experiments.cloze.live_words import lost_spellings, score_words, spellings, usable_contexts, writable
from shannon_game.experiments.cloze.settings import ORACLE, cluster_se, groups_of
from shannon_game.experiments.cloze.tvd.results import oracle_tvd
from shannon_game.experiments.cloze.tvd.settings import TvdSettings
from shannon_game.experiments.harness.figures import new_figure, player_colours, player_label
from shannon_game.experiments.harness.language_models import Work, open_work
from shannon_game.experiments.harness.marks import titled
from shannon_game.experiments.harness.plots import diagonal, styled
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.harness.settings import rng_for, rows_of
from shannon_game.experiments.studies.cloze.answers import answer_warnings
from shannon_game.inference.lm.language_model import LanguageModel, encode
from shannon_game.inference.lm.loading import load_language_model
from shannon_game.inference.lm.word_samples import sample_words
from shannon_game.inference.store.keys import result_key

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Asked:
    """Contexts, people's words in them, and the strings that count as each word."""

    texts: list[str]
    people: Distributions
    words: list[str]
    forms: Mapping[str, Sequence[str]]
    codes: Mapping[str, int]
    rules: WordRules


def exact_tvd(study: xr.Dataset, settings: TvdSettings) -> ExperimentResult:
    """Compute every live model's TVD to people from its probabilities of the words that people gave."""
    rules = settings.words.of(study)
    words = study_words(study, human=rules, model=rules, corpus=rules, models=[])
    work = open_work(settings)
    items = _items(study, settings, words, work)
    people = words.human_distributions.take(items)
    asked = _Asked(
        texts=[str(text).rstrip() for text in study["context"].to_numpy()[items]],
        people=people,
        words=[str(words.strings[code]) for code in people.word],
        forms=spellings(study, words, items, rules, most=settings.max_forms),
        codes={str(word): code for code, word in enumerate(words.strings)},
        rules=rules,
    )
    oracle = oracle_tvd(study, words, n_splits=settings.n_splits, n_bins=10, rng=rng_for(settings.seed, ORACLE))
    between = np.full(study.sizes["item"], np.nan)
    between[oracle.items] = oracle.raw
    rows, distances, sampled, warnings = [], {}, {}, [*answer_warnings(words)]
    for name, chosen in settings.models.items():
        model = load_language_model(chosen)
        forms, lost = writable(model, asked.forms)
        warnings += lost_spellings(name, lost)
        q, start = _probabilities(settings, work, model, replace(asked, forms=forms))
        distances[name] = tvd_exact(people, q)
        listed = np.bincount(people.context, weights=q, minlength=len(items))
        row: dict[str, Any] = {
            "player": name,
            "n_contexts": len(items),
            "tvd": distances[name].mean(),
            "se_tvd": cluster_se(distances[name], groups_of(study, items)),
            "mass_on_answers": listed.mean(),
            "p_word_begins": np.exp(start).mean(),
            "tvd_between_oracles": float(oracle.raw[np.isin(oracle.items, items)].mean()),
        }
        if settings.n_sampled is not None:
            at, estimate = _sampled(settings, model, asked)
            sampled[name] = np.full(len(items), np.nan)
            sampled[name][at] = estimate
            exact = distances[name][at]
            row |= {"n_sampled_contexts": len(at), "n_samples": settings.n_samples, "tvd_of_those": exact.mean()}
            row |= {"tvd_sampled": estimate.mean(), "sampling_bias": (estimate - exact).mean()}
        rows.append(row)
    table = pd.DataFrame(rows)
    texts = groups_of(study, items).astype(str)
    dataset = xr.Dataset(
        {
            "tvd": (("player", "item"), np.stack(list(distances.values()))),
            "tvd_between_oracles": ("item", between[items]),
        },
        coords={"player": list(distances), "item": item_labels(study)[items], "text_id": ("item", texts)},
    )
    if sampled:
        dataset["tvd_sampled"] = ("player", "item"), np.stack(list(sampled.values()))
    by_item = cloze_items(study, rules=rules, words=words).loc[items].reset_index(drop=True)
    return ExperimentResult(
        table=table,
        dataset=dataset,
        tables={"items": by_item.assign(**{f"tvd_{name}": values for name, values in distances.items()})},
        figures={"tvd_exact": exact_figure(dataset)},
        text=_summary(table, work),
        warnings=tuple(warnings),
    )


def _items(study: xr.Dataset, settings: TvdSettings, words: StudyWords, work: Work) -> NDArray[np.intp]:
    """Contexts with an answer and a text before them, of this run's shard, neighbours in their text together."""
    text = study["context"].to_numpy()
    usable = usable_contexts(study, words)
    wanted = settings.n_contexts
    if wanted is not None and wanted < len(usable):
        usable = np.sort(rng_for(settings.seed, "contexts").choice(usable, size=wanted, replace=False))
    items = usable[work.mine([result_key(str(text[item])) for item in usable])]
    if not len(items):
        raise InputError("holds none of the contexts; use fewer shards or more contexts", field="experiment.shard")
    return items


def _probabilities(settings: TvdSettings, work: Work, model: LanguageModel, asked: _Asked) -> tuple[Floats, Floats]:
    """Probability of every row of people's distributions under the model, and ln of that that a word begins."""
    of_context: list[list[str]] = [[] for _ in asked.texts]
    for context, word in zip(asked.people.context, asked.words, strict=True):
        of_context[context] += asked.forms[word]
    other = settings.other_tokenisations_nats
    answers = score_words(work, model, asked.texts, of_context, other_tokenisations_nats=other)
    probability = np.zeros(len(asked.words))
    place = np.zeros(len(asked.texts), dtype=np.intp)
    for row, (context, word) in enumerate(zip(asked.people.context, asked.words, strict=True)):
        begin, end = place[context], place[context] + len(asked.forms[word])
        probability[row] = np.exp(answers["logprob"][context][begin:end]).sum()
        place[context] = end
    return probability, answers["start_logprob"]


def _sampled(settings: TvdSettings, model: LanguageModel, asked: _Asked) -> tuple[NDArray[np.intp], Floats]:
    """TVD of whole-word samples to people, at some contexts (positions among those asked)."""
    n_contexts = min(settings.n_sampled or 0, len(asked.texts))
    at = np.sort(rng_for(settings.seed, "sampled").choice(len(asked.texts), size=n_contexts, replace=False))
    codes = dict(asked.codes)
    tokens = encode(model, [asked.texts[i] for i in at])
    context, code = [], []
    for index, one in enumerate(sample_words(model, tokens, n_samples=settings.n_samples, seed=settings.seed)):
        found = normalise_words(one.words, asked.rules)
        kept = [str(word) for word in found.words[~found.missing]]
        context += [index] * len(kept)
        code += [codes.setdefault(word, len(codes)) for word in kept]
    counts = count_words(context, code, np.ones(len(code), dtype=np.int64), n_contexts=n_contexts)
    return at, total_variation(relative_frequencies(counts), asked.people.take(at))


@styled
def exact_figure(dataset: xr.Dataset) -> Figure:
    """Draw the distribution of the distances over contexts, and sampled distances against exact ones."""
    players = [str(name) for name in dataset["player"].to_numpy()]
    colours, sampled = player_colours(players), "tvd_sampled" in dataset
    between = dataset["tvd_between_oracles"].to_numpy()
    shown = [("half of people against the others", between[~np.isnan(between)], "0.4")]
    shown += [(player_label(name), dataset["tvd"].sel(player=name).to_numpy(), colours[name]) for name in players]
    # of few contexts narrow bins are a row of single bars
    bins = np.linspace(0, 1, 41 if dataset.sizes["item"] >= 200 else 21).tolist()
    fig = new_figure(7.6 if sampled else 5.2, 3.3)
    left, *right = fig.subplots(1, 2 if sampled else 1, squeeze=False)[0]
    for name, values, colour in shown:
        left.hist(values, bins=bins, density=True, histtype="step", color=colour, label=name)
        left.axvline(values.mean(), color=colour, linewidth=1, linestyle=":")
    left.set(xlim=(0, 1), xlabel="TVD to people (dotted: means)", ylabel="density over contexts")
    # outside: the distributions fill the axes, and the title stands above
    left.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    for axes in right:
        diagonal(axes)
        for name in players:
            own = dataset.sel(player=name)
            axes.plot(own["tvd"], own["tvd_sampled"], "o", color=colours[name], markersize=3.5)
        axes.set(xlabel="exact TVD to people", ylabel="TVD from samples")
    titled(fig, "Distance of exact next-word probabilities to people")
    return fig


def _summary(table: pd.DataFrame, work: Work) -> str:
    lines = [
        f"- **{player_label(row.player)}** ({row.n_contexts:,} contexts): TVD to people {row.tvd:.4f} (s.e. "
        f"{row.se_tvd:.4f} over texts); two halves of the people differ by {row.tvd_between_oracles:.4f}"
        for row in rows_of(table)
    ]
    return (
        "\n".join(lines) + "\n\nThe models' probabilities of people's words are exact, given that a word begins; all "
        f"other words add half of what is left. People's side is still a sample. {work.said()}"
    )
