"""A study's questions, written to the database: those that count, those of the training, the attention checks."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import insert, select
from sqlalchemy.orm import Session as Transaction

from shannon_game.estimators.code_identity import package_version
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.games import top1
from shannon_game.experiments.collect.games.protocol import CUT, QuestionRow
from shannon_game.experiments.collect.games.registry import game_named
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.collect.tables import Question, Study
from shannon_game.experiments.harness.settings import rng_for

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Part", "n_checks", "parts_of", "register"]


@dataclass(frozen=True)
class Part:
    """A question and what it is for.

    Parameters
    ----------
    row : QuestionRow
    training : bool
        Asked in the training part alone.
    attention : bool
        An attention check.
    """

    row: QuestionRow
    training: bool = False
    attention: bool = False


def n_checks(settings: CollectSettings) -> int:
    """Attention checks of a session.

    Examples
    --------
    >>> n_checks(CollectSettings(n_questions=40, attention_share=0.05))
    2
    """
    return math.ceil(settings.attention_share * settings.n_questions)


def parts_of(name: str, study: xr.Dataset, settings: CollectSettings) -> list[Part]:
    """Make a game's questions and set some aside: for the training, and for what attention checks are made of.

    What is set aside is drawn with the seed; in games that go through a text it is one document.

    Examples
    --------
    >>> from shannon_game.estimators.comparison.examples import comparison_study
    >>> settings = CollectSettings(training_rounds=1, n_questions=3, attention_share=0.3)
    >>> sum(part.training for part in parts_of("comparison", comparison_study(), settings))
    1
    """
    game = game_named(name)
    rows = game.questions(study, settings)
    order = rng_for(settings.seed, f"training {name}").permutation(len(rows)).tolist()
    checks = n_checks(settings)
    # places without a document follow no other
    if settings.goes_on(name) and any(row.document for row in rows):
        document = _training_document(rows, settings.training_rounds) if settings.training_rounds else None
        aside = [at for at, row in enumerate(rows) if row.document == document]
        # an instruction stands in place of the text's question: nothing of the text is given away
        sources = [*aside, *order][:checks]
    else:
        # a context that was shown in the training would answer what it holds: none of that is asked
        aside = order[: settings.training_rounds]
        sources = order[len(aside) : len(aside) + checks]
    kept = set(range(len(rows))) - set(aside) - (set(sources) if name == "comparison" else set())
    if not any(rows[at].opens for at in kept):
        problem = (
            f"sets aside all {len(rows)} questions that the study has for {name}; ask fewer training rounds and "
            "attention checks, or take a larger study"
        )
        raise InputError(problem, source=f"study {study.attrs.get('name')!r}", field="training_rounds")
    made = [Part(rows[at], training=at in set(aside)) for at in range(len(rows)) if at in kept or at in set(aside)]
    for number, at in enumerate(sources):
        content = game.attention_check({**rows[at].content, "context": ""}, number)
        made.append(Part(QuestionRow(f"check-{number}", content), attention=True))
    return made


def register(transaction: Transaction, study: xr.Dataset, settings: CollectSettings) -> Study:
    """Write a study and its questions, or find them where the same ones are there already."""
    name = str(study.attrs.get("name", "study"))
    parts = [(game, part) for game in settings.game for part in parts_of(game, study, settings)]
    rows = [
        vars(part.row)
        | {"game": game, "training": part.training, "attention": part.attention, "content": dict(part.row.content)}
        for game, part in parts
    ]
    # a sign before a context makes no other study
    hashed = [row | {"content": {key: value for key, value in row["content"].items() if key != CUT}} for row in rows]
    content_hash = hashlib.sha256(json.dumps([name, hashed], sort_keys=True).encode()).hexdigest()
    found = transaction.scalar(select(Study).where(Study.content_hash == content_hash))
    stored = settings.model_dump(mode="json", exclude={"database"})
    if "top1" in settings.game:
        # the same questions have the same places between them
        known = None if found is None else found.settings.get("top1_left_out")
        stored["top1_left_out"] = top1.left_out(study) if known is None else known
    if found is not None:
        found.settings = stored
        return found
    made = Study(
        name=name, content_hash=content_hash, settings=stored, version=package_version(), created_at=time.time()
    )
    transaction.add(made)
    transaction.flush()
    transaction.execute(
        insert(Question), [row | {"study_id": made.id, "n_served": 0, "n_held": 0, "n_answered": 0} for row in rows]
    )
    return made


def _training_document(rows: Sequence[QuestionRow], rounds: int) -> str:
    """Find the shortest document with enough places."""
    sizes: dict[str, int] = {}
    for row in rows:
        sizes[row.document] = sizes.get(row.document, 0) + 1
    enough = {document: size for document, size in sizes.items() if size >= rounds}
    return min(enough or sizes, key=lambda document: (sizes[document], document))
