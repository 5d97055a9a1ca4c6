"""Cards: what one run found about one model, as a JSON file that a board reads on any machine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from shannon_game.estimators.code_identity import package_version
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.boards.abilities import DEFINITIONS, BesidePeopleSettings
from shannon_game.experiments.harness.text_models import AnyModel
from shannon_game.inference.settings import Count, Settings, Text, settings_from

FORMAT: Literal[1] = 1


class CardScore(Settings):
    """One score of a player on one data set."""

    ability: Text
    corpus: Text
    score: Text
    definition: Count
    """Version of what the score is."""
    unit: str
    value: float
    value_lower: float | None = None
    value_upper: float | None = None
    floor: float | None = None
    ceiling: float | None = None
    share: float | None = None
    share_lower: float | None = None
    share_upper: float | None = None
    no_share: str = ""
    """Why there is no share."""
    n_units: Count
    n_groups: Count
    units: str
    """Digest of units, people and resamples: replicates of equal ones are pairs."""
    replicates: tuple[int, ...] = ()
    """Bootstrap samples of the share, in ten-thousandths."""


class CardCorpus(Settings):
    """Whose data a card rests on."""

    name: Text
    licence: Text
    citation: Text


class LeftOut(Settings):
    """What could not be scored."""

    corpus: Text
    ability: Text
    why: Text


class Card(Settings):
    """What one run found about one player."""

    card: Literal[1]
    """Version of this layout."""
    model: Text
    """Name of the player."""
    toolkit: Text
    """Version of the toolkit."""
    made: Text
    """When."""
    seconds: float
    """Of the whole run, for all its players."""
    engine: Mapping[str, Any] = {}
    """Settings of a model that ran, its revision among them; none: words or log-probabilities stored with the data."""
    settings: Mapping[str, Any] = {}
    """Of the run."""
    corpora: tuple[CardCorpus, ...] = ()
    scores: tuple[CardScore, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def new_card(name: str, model: AnyModel | None, settings: BesidePeopleSettings, seconds: float, **found: Any) -> Card:
    """Make a card of now; where a model or a store lies on this machine is no part of it."""
    own = settings.model_dump(include={"seed", "n_items", "n_splits", "n_replicates", "interval", "max_forms"})
    engine: dict[str, Any] = {}
    if model is not None:
        engine = model.record()
        if engine.get("path") and model.source != "hub":
            engine["path"] = Path(str(engine["path"])).name
    return Card(
        card=FORMAT,
        model=name,
        toolkit=package_version(),
        made=datetime.now().astimezone().isoformat(timespec="seconds"),
        seconds=round(seconds, 1),
        engine={key: value for key, value in engine.items() if value is not None},
        settings=own,
        **found,
    )


def write_cards(cards: Sequence[Card], folder: Path) -> None:
    """Write a file per card."""
    folder.mkdir(parents=True, exist_ok=True)
    for card in cards:
        name = re.sub(r"[^\w.-]+", "_", card.model)
        text = json.dumps(card.model_dump(mode="json"), ensure_ascii=False, indent=1)
        # numbers of one list on one line
        text = re.sub(r"\[\s+(-?\d[^\[\]{}\"]*?)\s+\]", lambda found: f"[{' '.join(found[1].split())}]", text)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def read_cards(given: Sequence[str | Path]) -> list[tuple[Path, Card]]:
    """Read cards of files, and of all .json files in folders."""
    paths: list[Path] = []
    for each in given:
        path = Path(each).expanduser()
        found = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not found:
            raise InputError("holds no card (.json)", source=path)
        paths += found
    return [(path, read_card(path)) for path in paths]


def read_card(path: Path) -> Card:
    """Read one card; one line says what is wrong with it."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError("no such file", source=path) from None
    except (ValueError, UnicodeDecodeError) as error:
        problem = f"is no JSON: {error}; copy the card again, or make it again with +exp=beside_people"
        raise InputError(problem, source=path) from None
    if not isinstance(content, Mapping) or "card" not in content:
        raise InputError("is no card: it has no field card; take a file of cards/ of +exp=beside_people", source=path)
    if content["card"] != FORMAT:
        problem = f"is {content['card']!r}, this version reads {FORMAT}; make the card again, or update the toolkit"
        raise InputError(problem, source=path, field="card")
    try:
        return settings_from(Card, dict(content))
    except InputError as error:
        raise InputError(error.problem, source=path, field=error.field) from None


def known_scores(path: Path, card: Card) -> tuple[list[CardScore], list[str]]:
    """Scores of a card whose definition is ours, and notes on the others and on another version of the toolkit."""
    kept: list[CardScore] = []
    other: list[CardScore] = []
    for score in card.scores:
        definition = DEFINITIONS.get((score.ability, score.score))
        (kept if definition is not None and definition.version == score.definition else other).append(score)
    notes = []
    if card.toolkit != package_version():
        notes.append(f"cards that were made with version {card.toolkit} are read; this is {package_version()}")
    if other:
        names = ", ".join(sorted({f"{each.ability}/{each.score}" for each in other}))
        notes.append(f"{path.name}: left out, as these scores are defined otherwise here: {names}")
    return kept, notes
