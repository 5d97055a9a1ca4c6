"""``+exp=build_cloze``: live language models continue the contexts of a cloze study, and become models of it.

Their words are drawn as people's are collected, with one or several decoders, and scored exactly. What is written is a
cloze study like any other: ``study=cloze_file`` reads it. All of it goes through the store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pydantic import Field

from shannon_game.estimators.cloze import (
    WordRules,
    entropy_nats,
    relative_frequencies,
    study_words,
    total_variation,
    validate_cloze_study,
)
from shannon_game.estimators.cloze.words import FAILED
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import add_note, notes
from shannon_game.estimators.messages import Load, Set
from shannon_game.experiments.cloze import live_words
from shannon_game.experiments.cloze.build_cloze.asked import asked_player
from shannon_game.experiments.cloze.build_cloze.players import (
    BuiltContexts,
    BuiltPlayer,
    add_players,
    ancestral_player,
    drawn_player,
    exact_player,
    take_contexts,
    without_models,
)
from shannon_game.experiments.cloze.figures import colours, label
from shannon_game.experiments.cloze.settings import known_mean
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.language_models import SMOLLM2, open_work
from shannon_game.experiments.harness.marks import named
from shannon_game.experiments.harness.questions import one_panel
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.harness.text_models import TextModels, TextPlayer, TextSettings
from shannon_game.experiments.studies.cloze.file import save_cloze_study
from shannon_game.inference.lm.decoding import Decoding
from shannon_game.inference.lm.engine import EngineBase, open_engine
from shannon_game.inference.lm.stored import Work
from shannon_game.inference.settings import Count, Positive

Share = Annotated[float, Field(gt=0, lt=1)]
_EDGES = " \t\n.,;:!?\"'()[]\u2018\u2019\u201c\u201d\u2026"


class BuiltClozeRow(column.Row):
    """One model under one decoding."""

    player: str = column.key("model and decoding", players=True)
    model: str = column.context("model")
    decoding: str = column.context("how its words are drawn")
    n_contexts: int = column.context("contexts")
    n_contexts_without_word: int = column.detail("contexts in which no draw is a word")
    n_draws: int = column.context("draws per context")
    share_failed: float = column.estimate("share of draws that are no word")
    n_different: float = column.estimate("different words per context")
    entropy_nats: float = column.headline("mean entropy of the next word", unit="nats")
    tvd_to_exact: float = column.estimate("TVD to the model's exact distribution")
    probability_listed: float = column.detail("probability of the words of the exact distribution")


class BuildClozeSettings(live_words.LiveWordSettings, TextSettings):
    models: TextModels = Field(default_factory=lambda: {"smollm2": SMOLLM2})
    """Language models, by name; on the command line model=[smollm2], or model=[api] for one behind an endpoint, which
    is asked in text."""
    temperature: Annotated[float, Field(ge=0)] = 1.0
    """Of answers in text."""
    n_listed: Count | None = None
    """Ask models behind an endpoint for one list of so many words, not n_samples times for one word."""
    n_texts: Count | None = None
    """Texts at random, from which n_contexts are drawn; null takes all."""
    keep_models: bool = True
    """Leave the study's own models in it."""
    n_samples: Count = 1000
    """Words drawn of every model, with every decoder, in each context."""
    temperatures: tuple[Positive, ...] = ()
    """Also drawn at these temperatures, as players such as smollm2-t0.5."""
    top_k: tuple[Count, ...] = ()
    """Also drawn from the so many most probable tokens, as players such as smollm2-k40."""
    nucleus: tuple[Share, ...] = ()
    """Also drawn from the most probable tokens that hold this probability, as players such as smollm2-p0.9."""
    greedy: bool = False
    """Also the most probable tokens, as a player such as smollm2-greedy: one word per context."""
    exact: bool = True
    """Also the exact probabilities of the words of people, the text and the draws: as log-probabilities of the draws,
    and as a player such as smollm2-exact, whose counts stand for probabilities."""
    model_draws: Annotated[int, Field(ge=100, le=10**6)] = 100_000
    """Draws that stand for the exact probabilities of a context: the share of each word is rounded to this many."""
    items_per_batch: Count = 8
    """Most contexts of a batch: what a killed run loses."""

    def decodings(self) -> list[Decoding]:
        """Ancestral sampling first, then the decoders that are asked for."""
        return [
            Decoding(),
            *(Decoding(temperature=value) for value in self.temperatures if value != 1),
            *(Decoding(top_k=value) for value in self.top_k),
            *(Decoding(top_p=value) for value in self.nucleus),
            *([Decoding(greedy=True)] if self.greedy else []),
        ]


@experiment(BuildClozeSettings, row=BuiltClozeRow)
def build_cloze(study: xr.Dataset, settings: BuildClozeSettings) -> ExperimentResult:
    """Let live models continue the contexts of a cloze study.

    A row per player; ``files["study.nc"]`` is the study, which :func:`cloze_file` reads.
    """
    if not settings.models:
        raise InputError(f"names no model; add {Set('model', ['smollm2'])}", field=Set("model"))
    rules = settings.words.of(study)
    words = study_words(study, human=rules, model=rules, corpus=rules, models=[])
    work = open_work(settings)
    items = live_words.contexts_asked(study, words, settings, work, n_texts=settings.n_texts)
    forms = live_words.spellings(study, words, items, rules, most=settings.max_forms)
    people = words.human_distributions.take(items)
    answers: list[list[str]] = [[] for _ in items]
    for context, code in zip(people.context, people.word, strict=True):
        answers[context] += forms[str(words.strings[code])]
    contexts = BuiltContexts(
        texts=[str(text).rstrip() for text in study["context"].to_numpy()[items]],
        answers=answers,
        targets=[_bare(str(word)) for word in study["target_word"].to_numpy()[items]],
    )
    players: list[BuiltPlayer] = []
    warnings: list[str] = []
    listed: dict[str, NDArray[np.float64]] = {}
    records: dict[str, Any] = {}
    costs: list[str] = []
    for name, chosen in settings.models.items():
        engine = open_engine(name, chosen)
        records[name] = engine.record()
        if not engine.can("generate"):
            player = TextPlayer(name, settings, settings.seed, work, engine)
            asked, said = asked_player(player, contexts.texts, settings.n_samples, settings.n_listed)
            players.append(asked)
            costs.append(said)
            records[name] |= {"prompt": settings.prompt.name}
            continue
        its, mass, notes_ = _players(settings, work, engine, contexts)
        players += its
        listed |= mass
        warnings += notes_
    chosen_part = take_contexts(study if settings.keep_models else without_models(study), items)
    built = validate_cloze_study(_described(add_players(chosen_part, players), study, settings, records))
    table, by_item = players_table(built, players, listed, rules)
    warnings += _doubts(table)
    if work.shard is not None:
        warnings.append(
            f"these are the contexts of shard {work.shard.index}/{work.shard.count} alone, and no study was written; "
            f"when all shards are done, the same without {Set('experiment.shard')} computes nothing and writes it"
        )
    return ExperimentResult(
        table=table,
        dataset=by_item,
        figures={"entropies": players_figure(by_item, str(study.attrs["name"]))},
        text=summary(table, " ".join([work.said(), *costs])),
        warnings=tuple(warnings),
        writers={} if work.shard is not None else {"study.nc": partial(save_cloze_study, built)},
    )


def _bare(target: str) -> str:
    """The word of the text without the punctuation around it; "" where it is none to a model."""
    word = target.strip(_EDGES)
    return word if live_words.is_word(word) else ""


def _players(
    settings: BuildClozeSettings, work: Work, engine: EngineBase, contexts: BuiltContexts
) -> tuple[list[BuiltPlayer], dict[str, NDArray[np.float64]], list[str]]:
    """Players of one model; what the exact one lists of its probability; spellings that the model cannot write."""
    n_samples, name = settings.n_samples, engine.name
    draws = {
        how: live_words.draw_words(work, engine, contexts.texts, decoding=how, n_samples=n_samples, seed=settings.seed)
        for how in settings.decodings()
    }
    players = [
        drawn_player(
            f"{name}-{how.label}" if how.label else name, name, how.label or "ancestral", drawn, n_draws=n_samples
        )
        for how, drawn in draws.items()
    ]
    if not settings.exact:
        return players, {}, []
    drawn = draws[Decoding()]
    wanted = [
        list(dict.fromkeys(word for word in (*said, target, *map(str, some)) if live_words.is_word(word)))
        for said, target, some in zip(contexts.answers, contexts.targets, drawn["word"], strict=True)
    ]
    fine, lost = engine.writable({word: [word] for some in wanted for word in some})
    wanted = [[word for word in some if fine[word]] for some in wanted]
    found = engine.word_log_probs(work, contexts.texts, wanted, others=settings.other_tokenisations_nats, alone=True)
    scored = [
        {word: value for word, value in zip(some, values.tolist(), strict=True) if np.isfinite(value)}
        for some, values in zip(wanted, found["logprob"], strict=True)
    ]
    exact, mass = exact_player(f"{name}-exact", name, drawn, contexts, scored, n_draws=settings.model_draws)
    plain = ancestral_player(players[0], contexts, scored)
    return [plain, exact, *players[1:]], {exact.name: mass}, live_words.lost_spellings(name, lost, engine.word_note)


def _described(
    built: xr.Dataset, study: xr.Dataset, settings: BuildClozeSettings, records: dict[str, Any]
) -> xr.Dataset:
    built.attrs = {
        **study.attrs,
        "name": f"{study.attrs['name']} with {', '.join(settings.models)}",
        "seed": settings.seed,
        "live_models": json.dumps(records, sort_keys=True),
        "notes": json.dumps(notes(study)),
    }
    add_note(built, "contexts that live models continued", count=built.sizes["item"])
    return built


def _doubts(table: Any) -> list[str]:
    return [
        f"{row.player} gave no word in {row.n_contexts_without_word} of {row.n_contexts} contexts: what it continues "
        "there begins with no word (a punctuation mark, or more of the last word); comparisons leave them out"
        for row in table.itertuples(index=False)
        if row.n_contexts_without_word
    ]


_PEOPLE = "human"


def players_table(
    built: xr.Dataset, players: Sequence[BuiltPlayer], listed: Mapping[str, NDArray[np.float64]], rules: WordRules
) -> tuple[pd.DataFrame, xr.Dataset]:
    """Describe what each player said, over contexts and by context."""
    names = [player.name for player in players]
    words = study_words(built, human=rules, model=rules, corpus=rules, models=names)
    said = {name: relative_frequencies(words.models[name].counts) for name in names}
    n_items = built.sizes["item"]
    rows = []
    entropy = [entropy_nats(words.human_distributions)]
    for player in players:
        name = player.name
        totals = words.models[name].counts.totals
        failed = [sum(row.count for row in some if row.word == FAILED) for some in player.rows]
        different = np.bincount(words.models[name].counts.context, minlength=n_items)
        entropy.append(entropy_nats(said[name]))
        exact = said.get(f"{player.model}-exact")
        row: dict[str, Any] = {"player": name, "model": player.model, "decoding": player.decoding}
        row |= {"n_contexts": n_items, "n_contexts_without_word": int((totals == 0).sum()), "n_draws": player.n_draws}
        row |= {"share_failed": float(np.mean(failed)) / player.n_draws}
        row |= {"n_different": float(different[totals > 0].mean()) if (totals > 0).any() else np.nan}
        row |= {"entropy_nats": known_mean(entropy[-1])}
        row |= {"tvd_to_exact": np.nan if exact is None else known_mean(total_variation(said[name], exact))}
        rows.append(row | {"probability_listed": float(listed[name].mean()) if name in listed else np.nan})
    by_item = xr.Dataset(
        {"entropy_nats": (("player", "item"), np.stack(entropy), {"units": "nats"})},
        coords={"player": [_PEOPLE, *names], "item": built["item"].to_numpy()},
    )
    return BuiltClozeRow.table(rows), by_item


def players_figure(by_item: xr.Dataset, title: str) -> Figure:
    """Cumulative share of contexts by the entropy of their next word, one line per player and one of people."""
    highest = 1.05 * max(float(by_item["entropy_nats"].max().fillna(0)), 0.1)
    about = f"{by_item.sizes['item']:,} contexts of {title}"
    with one_panel(4.5, 4.0, "How varied are the next words?", about, grid="both") as (fig, axes):
        for name, colour in colours([str(name) for name in by_item["player"].to_numpy()]).items():
            values = by_item["entropy_nats"].sel(player=name).dropna("item").to_numpy()
            if len(values):
                shown, style = f"{label(name)}, mean {values.mean():.2f}", "--" if name == _PEOPLE else "-"
                axes.ecdf(values, color=colour, linestyle=style, label=shown)
        # beside the axis, so that a player without any entropy is seen
        axes.set(xlim=(-0.03 * highest, highest), ylim=(0, 1.02))
        axes.set_xlabel("entropy of the next word, nats")
        axes.set_ylabel("share of contexts")
        named(fig, axes.get_legend_handles_labels()[0], 2)
    return fig


def summary(table: pd.DataFrame, computed: str) -> str:
    """Say what each player is, and how far its samples are from the exact distribution."""
    lines = []
    for row in rows_of(table):
        line = f"- **{label(row.player)} ({row.decoding}) gives {row.n_different:.0f} different words per context**, "
        line += f"with an entropy of {row.entropy_nats:.3f} nats"
        if row.decoding == "exact":
            line += f"; the words that are listed hold {row.probability_listed:.1%} of the probability"
        else:
            line += f"; {row.share_failed:.1%} of {row.n_draws:,} draws per context gave no word"
            if not np.isnan(row.tvd_to_exact):
                line += f"; TVD to the exact distribution {row.tvd_to_exact:.4f}"
        lines.append(f"{line}.")
    return (
        "\n".join(lines) + f"\n\n`{Load('cloze_file', {'path': 'FOLDER/study.nc'})}` reads people's answers and the "
        f"models' words. Draws that give no word are failed samples, which the word rules leave out. {computed}"
    )
