"""A collection in the public layout of the original site, so that its authors' own programs read it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.collected.answers import Collected, read_collection
from shannon_game.experiments.studies.collected.loader import collected_study
from shannon_game.experiments.studies.collected.settings import CollectedSettings
from shannon_game.experiments.studies.comparison.lm_game_write import write_lm_game
from shannon_game.experiments.studies.guesses.lm_game_top1 import N_DOCUMENTS, RESPONSE_FILE, document_file
from shannon_game.inference.disk import write_whole
from shannon_game.inference.manifest import replaced

PUBLIC_GAMES = ("comparison", "top1")
"""Games that the original site had."""


def write_public(settings: CollectedSettings, folder: Path | str) -> Path:
    """Write the answers of a game as the files of the original site.

    Comparison: ``multi_comparisons/doc{i}.json``, questions numbered from 0 in the order in which they were served, and
    ``results_raw/res_loss_anonym.json``. ``study=lm_game study.root=FOLDER`` reads them, with ``study.sets`` and
    ``study.reference`` [0, number of questions - 1], ``study.participants=all`` and ``study.repeats=keep``.

    Top-1: ``docs/doc{i}.json``, documents numbered from 0, and ``results_raw/res_accuracy_anonym.json``.
    ``study=lm_game_top1 study.root=FOLDER study.items=all`` reads them. Tokens that were not asked for stand between
    the others as one string and empty ones, so that every place keeps its number.
    """
    if settings.game not in PUBLIC_GAMES:
        problem = f"is {settings.game!r}; the original site had {' and '.join(PUBLIC_GAMES)}"
        raise InputError(problem, field="game")
    if settings.game == "comparison":
        return write_lm_game(collected_study(settings), folder)
    return _write_top1(read_collection(settings), Path(folder))


def _write_top1(found: Collected, folder: Path) -> Path:
    documents: dict[str, list[Mapping[str, Any]]] = {}
    for question in found.questions:
        # a place without a document is one of its own
        documents.setdefault(question["document"] or question["item"], []).append(question)
    if len(documents) > N_DOCUMENTS:
        problem = f"has {len(documents):,} documents; the layout has room for {N_DOCUMENTS:,}"
        raise InputError(problem, source="study collected", field="document")
    numbers = {name: number for number, name in enumerate(documents)}
    answers = found.answers
    columns = (answers["participant"], answers["guess"], answers["document"], answers["item"], answers["position"])
    rows = [
        [at, who, guess, "", int(position) + 1, numbers[document or item]]
        for at, (who, guess, document, item, position) in enumerate(zip(*columns, strict=True))
    ]
    with replaced(folder, "public layout") as staging:
        for number, questions in enumerate(documents.values()):
            _write(staging / document_file(number), document_tokens(questions))
        _write(staging / RESPONSE_FILE, rows)
    return folder


def document_tokens(questions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Tokens of a document by their places, as far as its questions show it."""
    tokens: list[str] = []
    text = ""
    for question in sorted(questions, key=lambda each: int(each["position"])):
        n_missing = int(question["position"]) - len(tokens)
        between = question["context"].removeprefix(text)
        tokens += [between, *[""] * (n_missing - 1)] if n_missing else []
        tokens.append(question["target"])
        text = question["context"] + question["target"]
    return tokens


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(content), private=True)
