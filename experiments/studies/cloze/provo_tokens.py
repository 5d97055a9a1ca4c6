"""GPT-2's probabilities of tokens, the largest files of "Predict the Next Word" (appendix D), as variables.

A file has the scores of all 50,257 tokens at each context. Kept are the entropy, the likeliest token, and the tokens
that begin people's answers with their log-probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import xarray as xr
from pydantic import BaseModel, Field, TypeAdapter
from scipy.special import logsumexp, xlogy

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.files import FILE_LIMIT_BYTES, open_archive, read_bytes, unpacked_member
from shannon_game.experiments.studies.parsing import Note, Real, Text, add_notes, checked, parse_json
from shannon_game.inference.progress import stage

TOKEN_FILES = "Additional_Experiments/Appendix_D/Generations/Paragraphs_BPE-*.json"
"""Each as it is, or in a zip archive of its name with .zip."""


class _Answer(BaseModel):
    pred: Text
    bpe_ind: Annotated[int, Field(ge=0)]


class _Scores(BaseModel):
    cond_log_prob: Annotated[list[Real], Field(min_length=1)]


class _Entry(BaseModel):
    context: Text
    model: _Scores
    human: list[_Answer]


_ENTRIES = TypeAdapter(dict[str, dict[str, _Entry]])


def with_tokens(study: xr.Dataset, root: Path) -> xr.Dataset:
    """Add GPT-2's distribution over tokens, where the folder has its files; a context without is NaN, or -1."""
    paths = sorted({*root.glob(TOKEN_FILES), *root.glob(f"{TOKEN_FILES}.zip")})
    if not paths:
        return study
    texts = study["text_id"].to_numpy().astype(str).tolist()
    items = {key: at for at, key in enumerate(zip(texts, study["context"].to_numpy().tolist(), strict=True))}
    words = {word: at for at, word in enumerate(study["word_text"].to_numpy().tolist())}
    owner = np.searchsorted(study["item"].to_numpy(), study["response_item"].to_numpy())
    keys = zip(owner.tolist(), study["response_word"].to_numpy().tolist(), strict=True)
    rows = {key: row for row, key in enumerate(keys)}
    entropy, top_logprob = (np.full(study.sizes["item"], np.nan) for _ in range(2))
    top, token = np.full(study.sizes["item"], -1), np.full(study.sizes["word"], -1)
    logprob = np.full(study.sizes["response"], np.nan)
    left_out = 0
    for passage, entry in _entries(paths):
        item = items.get((passage, entry.context))
        if item is None:
            left_out += 1
            continue
        scores = np.array(entry.model.cond_log_prob)
        own = scores - logsumexp(scores)
        entropy[item] = -xlogy(np.exp(own), np.exp(own)).sum()
        top[item], top_logprob[item] = int(own.argmax()), own.max()
        for answer in entry.human:
            word = words.get(answer.pred, -1)
            if (row := rows.get((item, word))) is not None:
                token[word], logprob[row] = answer.bpe_ind, own[answer.bpe_ind]
    study = study.assign(
        token_entropy=("item", entropy, {"units": "nats"}),
        token_top=("item", top),
        token_top_logprob=("item", top_logprob, {"units": "nats"}),
        word_token=("word", token),
        response_token_logprob=("response", logprob, {"units": "nats"}),
    )
    said = "contexts with GPT-2's probabilities of tokens"
    notes = [Note(said, int((~np.isnan(entropy)).sum()))]
    if left_out:
        notes.append(Note("entries of tokens whose context is in no other file, left out", left_out, "warning"))
    add_notes(study, notes)
    return study


def _entries(paths: Sequence[Path]) -> Iterator[tuple[str, _Entry]]:
    with stage("files of tokens", len(paths)) as show:
        for done, path in enumerate(paths, start=1):
            content = parse_json(_content(path), path, nan="")
            if isinstance(content, dict):
                content.pop("vocab_dict", None)
            for passage, entries in checked(_ENTRIES.validate_python, content, path).items():
                for number, entry in entries.items():
                    largest = max((answer.bpe_ind for answer in entry.human), default=0)
                    if largest >= len(entry.model.cond_log_prob):
                        problem = f"is {largest}, and the model scores {len(entry.model.cond_log_prob)} tokens"
                        raise InputError(problem, source=path, field=f"{passage}, {number}, human, bpe_ind")
                    yield passage, entry
            show(done)


def _content(path: Path) -> bytes:
    if path.suffix != ".zip":
        return read_bytes(path)
    with open_archive(path, path) as archive:
        # macOS adds a folder of its own
        found = [one for one in archive.infolist() if one.filename.endswith(".json") and one.filename[:2] != "__"]
        if len(found) != 1 or found[0].file_size > FILE_LIMIT_BYTES:
            raise InputError(f"has {len(found)} JSON files, should have one of at most 4 GiB", source=path)
        return unpacked_member(archive, found[0], path)
