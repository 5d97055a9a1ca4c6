"""Texts that a language model writes, beside what the texts' own writers wrote in the same place."""

from __future__ import annotations

import hashlib
from typing import Annotated

import numpy as np
import xarray as xr
from pydantic import Field

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.language_models import SMOLLM2
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.harness.settings import Seeded
from shannon_game.experiments.studies.documents.texts import texts
from shannon_game.experiments.studies.documents.tokens import Document, documents_study
from shannon_game.inference.lm.settings import ModelSettings
from shannon_game.inference.settings import Count, Positive, UserPath

_PEOPLE = "people"


class WrittenSettings(Seeded):
    path: UserPath
    """Texts whose beginnings the model goes on from: a folder of .txt files, one, or JSON lines."""
    writer: ModelSettings = Field(default_factory=lambda: SMOLLM2)
    """The model that writes; it should be none of those that are scored, which know their own words."""
    prompt_words: Count = 40
    """Words of a text's beginning that the model is given."""
    max_tokens: Count = 120
    """Tokens that it writes at most; it stops at the end of a line."""
    temperature: Annotated[Positive, Field(le=10)] = 1.0
    """Of its draws."""
    n_texts: Count | None = None
    """Texts, the first ones; null takes all that are long enough."""


@loader(WrittenSettings)
def written(settings: WrittenSettings) -> xr.Dataset:
    """Let a model write on from the beginnings of texts, and keep what people wrote there: two splits, one length.

    Beginnings are left out of both. A pair is as long as the shorter of the two, in whole words; pairs in which the
    model wrote no word are left out and counted.

    Splits ``people`` and the writer's name.
    """
    from shannon_game.inference.lm.forward import with_bos  # noqa: PLC0415 - torch
    from shannon_game.inference.lm.generation import generate  # noqa: PLC0415
    from shannon_game.inference.lm.language_model import encode  # noqa: PLC0415
    from shannon_game.inference.lm.loading import load_language_model  # noqa: PLC0415

    source = texts(path=settings.path)
    whole = [
        (str(name), words)
        for name, text in zip(source["document"].to_numpy(), source["text"].to_numpy(), strict=True)
        if len(words := str(text).split()) > settings.prompt_words
    ][: settings.n_texts]
    if not whole:
        raise InputError(
            f"is {settings.prompt_words}, and no text has more words; use longer texts", field="prompt_words"
        )
    model = load_language_model(settings.writer)
    beginnings = [" ".join(words[: settings.prompt_words]) for _, words in whole]
    generated = generate(
        model,
        with_bos(model, encode(model, beginnings)),
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
        seeds=np.random.SeedSequence(settings.seed).generate_state(len(whole)).tolist(),
    )
    documents: list[Document] = []
    for (name, words), text in zip(whole, generated.text, strict=True):
        by_model, by_people = text.split(), words[settings.prompt_words :]
        length = min(len(by_model), len(by_people))
        if length:
            documents += [
                Document(f"{split}/{name}", " ".join(own[:length]), split)
                for split, own in ((_PEOPLE, by_people), (settings.writer.name, by_model))
            ]
    if not documents:
        raise InputError(
            "wrote nothing after any beginning; use another model", source=f"model {settings.writer.name!r}"
        )
    made = hashlib.sha256("\n".join(document.text for document in documents).encode()).hexdigest()
    return documents_study(
        f"written by {settings.writer.name}",
        documents,
        {"written": made, "texts": str(source.attrs["data_sha256"])},
        source=str(settings.path),
        notes=[("texts after which the model wrote no word (left out)", len(whole) - len(documents) // 2)],
    )
