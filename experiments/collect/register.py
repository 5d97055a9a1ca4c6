"""A study's questions, written to the database and read from it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session as Transaction

from shannon_game.estimators.code_identity import package_version
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set, word
from shannon_game.experiments.collect.deck import Card, Deck
from shannon_game.experiments.collect.parts import named_items, parts_of
from shannon_game.experiments.collect.settings import MAY_CHANGE, OF_PLAYERS, CollectSettings
from shannon_game.experiments.collect.surveys import consent_texts, read_survey
from shannon_game.experiments.collect.tables import Question, Study

if TYPE_CHECKING:
    import xarray as xr

_LONGEST_SHOWN = 60


def register(transaction: Transaction, study: xr.Dataset, settings: CollectSettings) -> Study:
    """Launch a study: write it with its questions and settings; or find it, launched before with the same ones."""
    name = settings.collection or str(study.attrs.get("name", "study"))
    if settings.players != "people":
        # a rehearsal is another study than the one that people play
        name = f"{name}, {settings.players} players"
        _refuse_people(transaction, settings)
    found = transaction.scalar(select(Study).where(Study.name == name))
    rows = [
        vars(part.row)
        | {"game": game, "training": part.training, "attention": part.attention, "content": dict(part.row.content)}
        for game in settings.game
        for part in parts_of(game, study, settings)
    ]
    _refuse_unknown_items(rows, settings, study)
    content_hash, stored = _hash(name, rows), launched(settings)
    if found is not None:
        _refuse_changes(found, stored, MAY_CHANGE - (OF_PLAYERS if settings.players != "people" else set()))
        if found.content_hash != content_hash:
            problem = f"asks other questions than {name!r} was launched with; {_or_another()}"
            raise InputError(problem, source=f"study {study.attrs.get('name')!r}")
        # what may change; a language may come later
        found.settings = found.settings | stored | {"consent": found.settings["consent"] | stored["consent"]}
        return found
    made = Study(
        name=name, content_hash=content_hash, settings=stored, version=package_version(), created_at=time.time()
    )
    transaction.add(made)
    transaction.flush()
    transaction.execute(insert(Question), [row | {"study_id": made.id, "n_served": 0, "n_held": 0} for row in rows])
    return made


def _refuse_unknown_items(rows: Sequence[Mapping[str, Any]], settings: CollectSettings, study: xr.Dataset) -> None:
    there = {row[name] for row in rows if not (row["training"] or row["attention"]) for name in ("item_id", "document")}
    aside = {row[name] for row in rows for name in ("item_id", "document")} - there
    for field, items in named_items(settings).items():
        unknown = next((item for item in items if item not in there), None)
        if unknown is None:
            continue
        problem = f"names {unknown!r}, which is no item or document that is asked"
        if unknown in aside:
            problem += "; it is set aside for training rounds or attention checks: ask fewer of these, or leave it out"
        elif settings.contexts is not None:
            problem += (
                f"; contexts draws {settings.contexts} items of the study: set contexts to {word(None)}, so that lists "
                "say which items are asked, or leave it out"
            )
        raise InputError(problem, source=f"study {study.attrs.get('name')!r}", field=field)


def _or_another() -> str:
    return f"give what it was launched with, or launch another study by {Set('experiment.collection', 'NAME')}"


def launched(settings: CollectSettings) -> dict[str, Any]:
    """All settings as they are stored at the launch; of files what they say, not where they are."""
    stored = settings.model_dump(
        mode="json", exclude={"database", "beside_people", "collection", "plan", "served", "vocabulary"}
    )
    stored["consent"] = consent_texts(settings)
    for name in ("before", "after"):
        stored[name] = [each.model_dump(mode="json") for each in read_survey(getattr(settings, name), name)]
    return stored


def _refuse_people(transaction: Transaction, settings: CollectSettings) -> None:
    """Refuse to play where people do: their exports, backups and quotas would hold what nobody answered."""
    theirs = [row.name for row in transaction.scalars(select(Study)) if row.settings.get("players") == "people"]
    if theirs and not settings.beside_people:
        problem = (
            f"holds {theirs[0]!r}, a study of people; leave {Set('experiment.database')} out, name another one for "
            f"players who are none, or set {Set('experiment.beside_people', True)}"
        )
        raise InputError(problem, field=Set("experiment.database"))


def _refuse_changes(found: Study, given: Mapping[str, Any], may_change: Collection[str]) -> None:
    changed, before = [], dict(_flat(found.settings))
    for name, value in _flat(given):
        old = before.get(name, value)
        if old != value and name.split(".")[0] not in may_change and name not in may_change:
            changed.append((name, old, value))
    # what settings add to the consent changes with them
    changed.sort(key=lambda each: each[0].startswith("consent."))
    if changed:
        name, old, value = changed[0]
        others = "".join(
            f"; {name} is {_shown(value, old)}, was {_shown(old, value)}" for name, old, value in changed[1:]
        )
        problem = f"is {_shown(value, old)}, and {found.name!r} was launched with {_shown(old, value)}{others}"
        raise InputError(f"{problem}; {_or_another()}", field=Set(f"experiment.{name}"))


def _flat(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if name in ("recruiter", "pay", "consent") and isinstance(value, dict):
            yield from ((f"{name}.{part}", each) for part, each in value.items())
        else:
            yield name, value


def _shown(value: Any, other: Any) -> str:
    """Show a value, of a long one the part in which it differs from another one."""
    text, its = (json.dumps(each, ensure_ascii=False) for each in (value, other))
    differs = next((at for at, (one, two) in enumerate(zip(text, its, strict=False)) if one != two), 0)
    first = max(differs - _LONGEST_SHOWN // 2, 0) if len(text) > _LONGEST_SHOWN else 0
    end = first + _LONGEST_SHOWN
    return f"{'...' if first else ''}{text[first:end]}{'...' if end < len(text) else ''}"


def _hash(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    return hashlib.sha256(json.dumps([name, rows], sort_keys=True).encode()).hexdigest()


def load_deck(transaction: Transaction, study_id: int) -> Deck:
    """Read the questions of a study."""
    return Deck(read_cards(transaction, Question.study_id == study_id))


def read_cards(transaction: Transaction, which: Any) -> list[Card]:
    """Read questions that fulfil a condition."""
    names = ("id", "game", "item_id", "document", "position", "opens", "training", "attention", "content")
    query = select(*(getattr(Question, name) for name in names)).where(which)
    return [Card(*row) for row in transaction.execute(query.order_by(Question.id))]
