"""Distance of live models' next words from people's, with the models' exact probabilities."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from shannon_game.estimators.cloze import cloze_items, study_words, tvd_exact
from shannon_game.estimators.layout import item_labels
from shannon_game.experiments.cloze.live_words import contexts_asked, lost_spellings, spellings
from shannon_game.experiments.cloze.settings import ORACLE, cluster_se, groups_of
from shannon_game.experiments.cloze.tvd.results import oracle_tvd
from shannon_game.experiments.cloze.tvd.settings import TvdSettings
from shannon_game.experiments.harness.figures import player_colours, player_label
from shannon_game.experiments.harness.language_models import open_work
from shannon_game.experiments.harness.marks import mark, named
from shannon_game.experiments.harness.questions import bullets, normal_interval, one_panel
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.harness.settings import rng_for, rows_of
from shannon_game.experiments.studies.cloze.answers import answer_warnings
from shannon_game.inference.lm.engine import open_engine
from shannon_game.inference.lm.stored import Work


def exact_tvd(study: xr.Dataset, settings: TvdSettings) -> ExperimentResult:
    """Compute every live model's TVD to people from its probabilities of the words that people gave."""
    rules = settings.words.of(study)
    words = study_words(study, human=rules, model=rules, corpus=rules, models=[])
    work = open_work(settings)
    items = contexts_asked(study, words, settings, work)
    people = words.human_distributions.take(items)
    contexts = [str(text).rstrip() for text in study["context"].to_numpy()[items]]
    said = [(at, str(words.strings[code])) for at, code in zip(people.context, people.word, strict=True)]
    all_forms = spellings(study, words, items, rules, most=settings.max_forms)
    oracle = oracle_tvd(study, words, n_splits=settings.n_splits, n_bins=10, rng=rng_for(settings.seed, ORACLE))
    between = np.full(study.sizes["item"], np.nan)
    between[oracle.items] = oracle.by_item["tvd"]
    texts = groups_of(study, items).astype(str)
    rows, distances, warnings = [], {}, [*answer_warnings(words)]
    for name, chosen in settings.models.items():
        engine = open_engine(name, chosen)
        forms, lost = engine.writable(all_forms)
        warnings += lost_spellings(name, lost, engine.word_note)
        q, start = engine.word_probabilities(
            work,
            contexts,
            [(at, forms[word]) for at, word in said],
            others=settings.other_tokenisations_nats,
        )
        distances[name] = tvd_exact(people, q)
        listed = np.bincount(people.context, weights=q, minlength=len(items))
        se = cluster_se(distances[name], texts)
        row = {"player": name, "n_contexts": len(items), "tvd": distances[name].mean(), "se_tvd": se}
        row |= {"mass_on_answers": listed.mean(), "p_word_begins": np.exp(start).mean()}
        rows.append({**row, "tvd_between_oracles": float(oracle.by_item["tvd"][np.isin(oracle.items, items)].mean())})
    tvd = ("player", "item"), np.stack(list(distances.values()))
    dataset = xr.Dataset(
        {"tvd": tvd, "tvd_between_oracles": ("item", between[items])},
        coords={"player": list(distances), "item": item_labels(study)[items], "text_id": ("item", texts)},
    )
    table = pd.DataFrame(rows)
    by_item = cloze_items(study, rules=rules, words=words).loc[items].reset_index(drop=True)
    return ExperimentResult(
        table=table,
        dataset=dataset,
        tables={"items": by_item.assign(**{f"tvd_{name}": values for name, values in distances.items()})},
        figures={"tvd_exact": exact_figure(dataset)},
        text=_summary(table, work),
        warnings=tuple(warnings),
    )


def exact_figure(dataset: xr.Dataset) -> Figure:
    """Draw the distribution of the distances over contexts."""
    players = [str(name) for name in dataset["player"].to_numpy()]
    colours = player_colours(players)
    between = dataset["tvd_between_oracles"].dropna("item").to_numpy()
    shown = [("half of the people", between, "0.4")]
    shown += [(player_label(name), dataset["tvd"].sel(player=name).to_numpy(), colours[name]) for name in players]
    # of few contexts narrow bins are a row of single bars
    bins = np.linspace(0, 1, 41 if dataset.sizes["item"] >= 200 else 21).tolist()
    title = "How far are exact probabilities from people's words?"
    with one_panel(4.5, 3.3, title, grid=None) as (fig, axes):
        for name, values, colour in shown:
            axes.hist(values, bins=bins, density=True, histtype="step", color=colour, label=name)
            axes.axvline(values.mean(), color=colour, linewidth=1, linestyle=":")
        axes.set(xlim=(0, 1), xlabel="TVD to people (dotted: means)", ylabel="density over contexts")
        named(fig, [mark(name, colour) for name, _, colour in shown])
    return fig


def _summary(table: pd.DataFrame, work: Work) -> str:
    line = (
        "**The TVD of {label} to people is {tvd:.4f}** (90% interval {interval} over texts, {n_contexts:,} "
        "contexts). That of two halves of the people is {tvd_between_oracles:.4f}."
    )
    intervals = [normal_interval(row.tvd, row.se_tvd, 4) for row in rows_of(table)]
    lines = bullets(table.assign(label=table["player"].map(player_label), interval=intervals), line)
    return (
        f"{lines}\n\nThe models' probabilities of people's words are exact, given that a word begins; all other words "
        f"add half of what is left. People's side is still a sample. {work.said()}"
    )
