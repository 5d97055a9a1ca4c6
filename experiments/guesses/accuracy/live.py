"""Live language models in the top-1 game: they guess at the very positions that people were asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.guesses.study import guess_contexts, with_model_answers
from shannon_game.experiments.guesses.accuracy.settings import AccuracySettings
from shannon_game.experiments.harness.language_models import open_work
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.experiments.harness.text_models import TextPlayer, ask_texts
from shannon_game.inference.lm.engine import open_engine
from shannon_game.inference.store.keys import result_key
from shannon_game.inference.text.prompts import word_question
from shannon_game.inference.text.reading import read_word


@dataclass(frozen=True, eq=False)
class TextGuesses:
    """Guesses of one model: answers that are no token are misses, and some contexts were cut to their end."""

    hit: NDArray[np.bool_]
    n_no_token: int
    n_cut: int
    said: str


def with_live_models(settings: AccuracySettings, study: xr.Dataset) -> tuple[xr.Dataset, list[str]]:
    """Let the models of the settings play, and return the study with their hits and surprisals."""
    if not settings.models:
        return study, []
    if "target_token" not in study:
        problem = "is not in the study, so that no language model can play it; leave the models out"
        raise InputError(problem, source=f"guess study {study.attrs.get('name')!r}", field="target_token")
    contexts = guess_contexts(study)
    items = _items(settings, study)
    targets = study["target_token"].to_numpy()
    asked = [(contexts[item], str(targets[item])) for item in items]
    work = open_work(settings)
    mine = work.mine([result_key(context, target) for context, target in asked]).tolist()
    if not mine:
        raise InputError("holds none of the positions; use fewer shards or more guesses", field="shard")
    items, asked = items[mine], [asked[i] for i in mine]
    played, said = study, []
    for name, chosen in settings.models.items():
        hit, surprisal = np.full(study.sizes["item"], np.nan), None
        engine = open_engine(name, chosen)
        if settings.answers == "text" or not engine.can("next_token"):
            guesses = guess_in_text(TextPlayer(name, settings, settings.seed, work, engine), asked)
            hit[items] = guesses.hit
            said.append(
                f"**{name}** was asked in text at {len(items):,} positions, {np.mean(guesses.hit):.1%} of its answers "
                f"are right; {guesses.n_no_token:,} are no token (none, or several words) and count as wrong."
                f"{_cut(guesses.n_cut)} {guesses.said}".strip()
            )
        else:
            answers = engine.guess_tokens(work, asked)
            surprisal = np.full(study.sizes["item"], np.nan)
            hit[items], surprisal[items] = answers["hit"], answers["surprisal_nats"]
            said.append(
                f"**{name}** played {len(items):,} positions, {np.mean(answers['hit']):.1%} of them right; "
                f"{np.mean(answers['n_tokens'] > 1):.1%} of the targets are several of its tokens, and "
                f"{np.mean(answers['begins_alike']):.1%} of its guesses begin with the target."
                f"{_cut(int(answers['is_cut'].sum()))}"
            )
        played = with_model_answers(played, name, hit, target_surprisal_nats=surprisal)
    return played, [*said, work.said()]


def _cut(n: int) -> str:
    return f" At {n:,} it saw the end of a text that is longer than it takes." if n else ""


def _items(settings: AccuracySettings, study: xr.Dataset) -> NDArray[np.intp]:
    """Positions along ``item`` of the guesses drawn, in the order of the texts."""
    wanted = settings.live_guesses
    asked = study["response_item"].to_numpy()
    if wanted is not None and wanted < len(asked):
        asked = rng_for(settings.seed, "live guesses").choice(asked, size=wanted, replace=False)
    positions = np.flatnonzero(np.isin(study["item"].to_numpy(), asked))
    document = study["item_document"].to_numpy()[positions].astype(str)
    return positions[np.lexsort((study["target_start"].to_numpy()[positions], document))]


def guess_in_text(player: TextPlayer, asked: Sequence[tuple[str, str]]) -> TextGuesses:
    """Ask a model for the next word of texts."""
    prompt, contexts = player.settings.prompt, [context for context, _ in asked]
    shortened = player.engine.shortened(contexts, word_question(prompt, "a"), player.settings.max_tokens)
    n_cut = sum(len(short) < len(context) for short, context in zip(shortened, contexts, strict=True))
    answers = ask_texts(player, [word_question(prompt, context) for context in shortened])
    words = [
        None if text is None else read_word(text, finished=finished)
        for text, finished in zip(answers.text, answers.finished.tolist(), strict=True)
    ]
    hit = np.array([word == target.strip() for word, (_, target) in zip(words, asked, strict=True)], dtype=np.bool_)
    return TextGuesses(hit, words.count(None), n_cut, answers.said)
