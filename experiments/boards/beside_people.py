"""``+exp=beside_people``: language models beside people on public data sets, one profile per model."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.documents import ceiling_share
from shannon_game.estimators.errors import InputError, require_packages
from shannon_game.estimators.layout import HUMAN
from shannon_game.estimators.schema import KIND
from shannon_game.experiments.boards.abilities import (
    DEFINITIONS,
    Ability,
    Asked,
    BesidePeopleSettings,
    Measured,
    UnitScores,
    digest,
)
from shannon_game.experiments.boards.cards import Card, CardCorpus, CardScore, LeftOut, new_card, write_cards
from shannon_game.experiments.boards.corpora import KINDS_OF, Corpus, corpora, entries_of
from shannon_game.experiments.boards.merge import (
    BoardRow,
    board_figure,
    differences_of,
    headlines,
    named_ability,
    rows_of_cards,
)
from shannon_game.experiments.harness.figures import player_label
from shannon_game.experiments.harness.registry import EXTRAS
from shannon_game.experiments.harness.result import Experiment, ExperimentResult, experiment, loader_warnings
from shannon_game.experiments.harness.text_models import AnyModel
from shannon_game.inference.api.keys import key_of
from shannon_game.inference.api.settings import ApiSettings
from shannon_game.inference.api.store import AnswerStore, NoAnswerError
from shannon_game.inference.lm.engine import engine_class
from shannon_game.inference.lm.settings import ModelSettings
from shannon_game.inference.progress import stage

_MODULES = "shannon_game.experiments.boards"


def _of_all_corpora(asked: Experiment[BesidePeopleSettings]) -> Experiment[BesidePeopleSettings]:
    """Let the data sets be named, in place of a study that lists them; by default all of the toolkit's."""

    @wraps(asked)
    def call(
        study: xr.Dataset | None = None, settings: BesidePeopleSettings | None = None, **changes: Any
    ) -> ExperimentResult:
        names = changes.pop("corpora", None)
        if study is not None and names is not None:
            raise InputError("is given, and so is corpora; leave one of them out", field="study")
        return asked(corpora(names=names) if study is None else study, settings, **changes)

    first, *others = signature(asked).parameters.values()
    named = Parameter("corpora", Parameter.KEYWORD_ONLY, default=None)
    call.__signature__ = Signature([first.replace(default=None), *others, named])  # type: ignore[attr-defined]
    return cast("Experiment[BesidePeopleSettings]", call)


@_of_all_corpora
@experiment(BesidePeopleSettings, row=BoardRow)
def beside_people(study: xr.Dataset, settings: BesidePeopleSettings) -> ExperimentResult:
    """Score language models beside people on every data set, by what people did there.

    One row per player, data set and score: its value, and the share of the way from a floor to people. Instead of a
    study that lists data sets, ``corpora=["provo", "my_norms.yaml"]`` names them; by default all of the toolkit's are
    taken, and what is not there is left out and counted. ``tables["differences"]`` has paired differences of shares,
    ``files["cards"]`` a card per player for :func:`board`.

    Examples
    --------
    >>> from shannon_game import beside_people
    >>> result = beside_people(corpora=["lm_game"], models=["smollm2"], n_items=20)  # doctest: +SKIP
    """
    for extra in {engine_class(chosen).extra for chosen in settings.models.values()} - {""}:
        require_packages(EXTRAS[extra], extra, source="models that run")
    endpoints = [chosen for chosen in settings.models.values() if isinstance(chosen, ApiSettings)]
    for endpoint in endpoints:
        key_of(endpoint)  # one that is missing is said before anything is asked
    for name, model in settings.models.items():
        # a mistyped path would otherwise be known after all the data sets
        if not isinstance(model, ModelSettings) or model.source != "folder":
            continue
        if not Path(str(model.path)).expanduser().is_dir():
            raise InputError(f"is {model.path!r}, and there is no such folder", source=f"model {name!r}", field="path")
    asked, found, left_out, notes = Asked.by(settings), [], [], []
    entries = entries_of(study)
    with stage("data sets", len(entries)) as show:
        for number, corpus in enumerate(entries):
            show(number, now=corpus.name)
            started = time.monotonic()
            try:
                measured, doubts = _measure(corpus, settings, asked)
            except NoAnswerError:
                raise
            except InputError as problem:
                left_out.append(LeftOut(corpus=corpus.name, ability=corpus.ability, why=str(problem)))
                continue
            notes += [f"{corpus.name}: {text}" for text in (*doubts, *measured.notes)]
            seconds = round(time.monotonic() - started, 1)
            found.append(_Found(corpus, measured, seconds))
        show(len(entries))
    if not found:
        raise InputError(f"none of the data sets is there: {left_out[0].corpus}: {left_out[0].why}", source="corpora")
    costs = ""
    if endpoints:
        with AnswerStore(settings.api_store) as answers:
            costs = f" {answers.ledger().said(settings.api_store)}"
    cards = list(_cards(found, left_out, settings))
    table, _ = rows_of_cards(cards)
    differences = differences_of(cards, level=settings.interval)
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset(BoardRow.variables(table, "row"), attrs={"corpora": [each.name for each in entries]}),
        tables={"differences": differences} if len(differences) else {},
        figures={"board": board_figure(table)},
        text=_summary(table, left_out) + costs,
        warnings=(
            *(f"left out: {each.corpus} ({each.ability}): {each.why}" for each in left_out),
            *_left_out_players(found, settings),
            *notes,
        ),
        writers={"cards": partial(write_cards, cards)},
        on_screen=headlines(table),
    )


def _left_out_players(found: Sequence[_Found], settings: BesidePeopleSettings) -> Iterator[str]:
    """Say what models that run have no score in, and which players no data set has."""
    for its in found:
        for name in set(its.measured.left_out) & set(settings.models):
            yield f"left out: {name} in {its.corpus.name}: {its.measured.left_out[name]}"
    known = {name for its in found for one in its.measured.scores for name in one.of_player}
    for name in set(settings.players or ()) - known:
        yield f"players: no data set has words or log-probabilities of {name!r}; they have {', '.join(sorted(known))}"


@dataclass(frozen=True, eq=False)
class _Found:
    corpus: Corpus
    measured: Measured
    seconds: float


def _measure(corpus: Corpus, settings: BesidePeopleSettings, asked: Asked) -> tuple[Measured, tuple[str, ...]]:
    """Score all players on a data set, and give the doubts of its loader."""
    function: Ability = getattr(import_module(f"{_MODULES}.{corpus.ability}"), corpus.ability)
    study = corpus.study_of()
    if study.attrs[KIND] not in KINDS_OF[corpus.ability]:
        wanted = " or ".join(KINDS_OF[corpus.ability])
        raise InputError(f"{corpus.study} gave a {study.attrs[KIND]} study; {corpus.ability} takes a {wanted} study")
    with stage(corpus.name):
        return function(study, settings.models, asked), loader_warnings(study)


def _cards(found: Sequence[_Found], left_out: Sequence[LeftOut], settings: BesidePeopleSettings) -> Iterator[Card]:
    """Make a card of every player, people first."""
    players: dict[str, AnyModel | None] = {HUMAN: None, **settings.models}
    players |= {
        name: None for its in found for one in its.measured.scores for name in one.of_player if name not in players
    }
    for name, model in players.items():
        scores, corpora_of, missing, seconds = [], [], list(left_out), 0.0
        for its in found:
            own = [score for one in its.measured.scores if (score := _score(name, one, its, settings)) is not None]
            scores += own
            seconds += its.seconds
            if own:
                about = its.corpus
                corpora_of.append(CardCorpus(name=about.name, licence=about.licence, citation=about.citation))
            if why := its.measured.left_out.get(name):
                missing.append(LeftOut(corpus=its.corpus.name, ability=its.corpus.ability, why=why))
        if scores or model is not None:
            kept = {"scores": tuple(scores), "corpora": tuple(corpora_of), "left_out": tuple(missing)}
            yield new_card(name, model, settings, seconds, **kept)


def _score(name: str, one: UnitScores, its: _Found, settings: BesidePeopleSettings) -> CardScore | None:
    """Score of a player on the units where it has one; people have their ceiling."""
    values = one.of_player.get(name, one.ceiling if name == HUMAN else None)
    if values is None:
        return None
    values = np.atleast_2d(values)
    known = np.flatnonzero(np.isfinite(values).all(axis=0))
    floor, ceiling, has_ends = one.floor, one.ceiling, True
    if floor is None or ceiling is None:
        floor, ceiling, has_ends = np.zeros(values.shape[1]), np.ones(values.shape[1]), False
    floor, ceiling = (np.atleast_2d(part)[:, known] for part in (floor, ceiling))
    key = its.corpus.ability, one.score
    definition = DEFINITIONS[key]
    share = ceiling_share(
        values[:, known],
        floor,
        ceiling,
        group=one.group[known],
        lower_is_better=definition.lower_is_better and has_ends,
        level=settings.interval,
        n_replicates=settings.n_replicates,
        seed=settings.seed,
    )
    has_share = has_ends and not share.no_share
    its_share = {"share": share.share, "share_lower": share.lower, "share_upper": share.upper}
    return CardScore(
        ability=its.corpus.ability,
        corpus=its.corpus.name,
        score=one.score,
        definition=definition.version,
        unit=definition.unit,
        value=share.value,
        value_lower=_finite(share.value_lower),
        value_upper=_finite(share.value_upper),
        **({"floor": share.floor, "ceiling": share.ceiling} if has_ends else {}),
        **{name: _finite(value) for name, value in its_share.items() if has_share},
        no_share=share.no_share if has_ends else "the score has neither floor nor ceiling",
        n_units=share.n_units,
        n_groups=share.n_groups,
        units=digest(*key, its.corpus.name, settings.seed, *one.unit[known], *_rounded(floor), *_rounded(ceiling)),
        replicates=tuple(np.rint(share.replicates * 1e4).astype(int).tolist()) if has_share else (),
    )


def _rounded(scores: FloatArray) -> list[float]:
    """Means over draws, as they are on any machine."""
    return [round(float(score), 6) for score in scores.mean(axis=0)]


def _finite(value: float) -> float | None:
    return value + 0.0 if np.isfinite(value) else None


def _sentence(row: Mapping[Hashable, Any]) -> str:
    """One headline score of one model."""
    who, ability = player_label(row["model"]), named_ability(row["ability"])
    value, its = f"{row['value']:.3f}", row["score"].replace("_", " ")
    if np.isfinite(row["share"]):
        return (
            f"- **{who} goes {row['share']:.2f} [{row['share_lower']:.2f}, {row['share_upper']:.2f}] of the way from "
            f"the floor to people in {ability}** ({row['corpus']}, {its} {value}; floor {row['floor']:.3f}, "
            f"people {row['ceiling']:.3f})."
        )
    known = np.isfinite(row["value_lower"])
    interval = f" [{row['value_lower']:.3f}, {row['value_upper']:.3f}]" if known else ""
    unit = "" if row["unit"] == "1" else f" {row['unit']}"
    return f"- **{who}: {its} {value}{interval}{unit} in {ability}** ({row['corpus']}; no share, as {row['no_share']})."


def _summary(table: pd.DataFrame, left_out: Sequence[LeftOut]) -> str:
    rows = headlines(table).to_dict("records")
    first = [_sentence(row) for row in rows if row["model"] != HUMAN] or ["**No model has a score.**"]
    said = (
        "A share above 1 is better than people by this score. Differences between models are in "
        "`differences.csv`; there is no total over abilities."
    )
    missing = f" Left out: {len(left_out)} of the data sets." if left_out else ""
    return "\n".join(first) + f"\n\n{said}{missing}"
