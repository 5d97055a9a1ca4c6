"""The top-1 game: a text up to a token, and the player types the one token that is thought most likely.

Only tokens of the vocabulary are taken, with their leading space. After each answer the token of the text is shown, and
the play goes on with the next place. Tokens that show nothing, such as a line break, cannot be guessed; they are not
asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from shannon_game.estimators.documents.tokens import is_visible_token
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.games.protocol import CHECK, Content, FormError, Game, QuestionRow, Reading, Steps
from shannon_game.experiments.collect.games.texts import item_places, marked_cuts, texts_of
from shannon_game.experiments.collect.games.vocabulary import read_vocabulary, vocabulary_of

if TYPE_CHECKING:
    import xarray as xr

    from shannon_game.experiments.collect.settings import CollectSettings


_LONGEST = 200


class Top1(Game):
    """Type the token that is thought most likely."""

    name = "top1"
    columns = ("guess",)
    field = "token"
    kind = "guess"
    earns = "right"
    goes_on = True
    shows_signs = True

    def questions(self, study: xr.Dataset, settings: CollectSettings, /) -> list[QuestionRow]:
        """Make a question of every token that shows something: of whole texts, or of a comparison study's targets.

        A text is begun at any of its places. The first token of a text has no context, and is not asked for.
        """
        source = f"study {study.attrs.get('name')!r}"
        vocabulary = read_vocabulary(settings.vocabulary)
        rows = []
        for row in _places(study):
            target = row.content["target"]
            if not can_be_guessed(target):
                continue
            if target not in vocabulary.tokens:
                problem = (
                    f"has no token {target!r}, which the study asks for at {row.item_id}; name the tokenizer.json of "
                    "the model that cut the texts"
                )
                raise InputError(problem, source=source, field="vocabulary")
            rows.append(QuestionRow(**{**vars(row), "content": {**row.content, "vocabulary": vocabulary.name}}))
        if not rows:
            problem = (
                "has no tokens that top1 could ask for; a comparison study has, and a documents study cut into tokens"
            )
            raise InputError(problem, source=source, field="game")
        return rows

    def read(self, content: Content, _layout: Content, _steps: Steps, form: Mapping[str, str], /) -> Reading:
        """Read ``token``, as it was typed."""
        token = form.get("token", "")
        if not token:
            raise FormError("error.no_token")
        if CHECK in content:
            return Reading({"token": token[:_LONGEST]}, correct=token.strip() == content[CHECK])
        if token not in vocabulary_of(content["vocabulary"]).tokens:
            raise FormError("error.not_a_token")
        correct = token == content["target"]
        return Reading({"token": token}, correct=correct, score=float(correct))

    def feedback(self, content: Content, _layout: Content, _steps: Steps, value: Content, /) -> dict[str, Any]:
        """The token of the text, the one that was typed, and whether they are the same."""
        return {"target": content["target"], "token": value["token"], "correct": value["token"] == content["target"]}


def can_be_guessed(token: str) -> bool:
    """Whether a token shows something, so that it can be typed."""
    return is_visible_token(token) and bool(token.strip())


def _places(study: xr.Dataset) -> Iterator[QuestionRow]:
    name = "document_name" if "document_name" in study.coords else "document"
    if "token" in study and "token_document" in study:
        names = study[name].values.astype(str).tolist()
        before, last, position = "", -1, 0
        tokens, of_document = study["token"].values.tolist(), study["token_document"].values.tolist()
        for token, document in zip(tokens, of_document, strict=True):
            if document != last:
                before, last, position = "", document, 0
            if before:
                content = {"context": before, "target": token}
                yield QuestionRow(f"{names[document]}:{position}", content, names[document], position)
            before, position = before + token, position + 1
    elif "target_token" in study and "context" in study:
        yield from marked_cuts(list(item_places(study)), texts_of(study))
