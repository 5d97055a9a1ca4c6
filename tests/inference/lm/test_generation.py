"""Answers to prompts: against one pass a token without a cache, and what ends them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.continuations import continuation_log_probs
from shannon_game.inference.lm.generation import generate, option_log_probs
from shannon_game.inference.lm.language_model import LanguageModel, encode
from shannon_game.inference.lm.prompting import end_tokens, option_tokens, prompt_tokens
from shannon_game.inference.lm.words import word_tokens
from tests.inference.lm import tiny_models
from tests.inference.lm.test_forward import FAMILIES
from tests.oracles import language_model as oracle

pytestmark = pytest.mark.torch

LETTERS = "abcdefg\n"
CHAT = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def slow_answer(model, prompt: list[int], max_tokens: int) -> tuple[list[int], bool]:
    """The most probable tokens, one whole pass each."""
    tokens: list[int] = []
    for _ in range(max_tokens):
        # the oracle puts the BOS token before it again
        [log_probs] = oracle.next_token(replace(model, bos_id=None), [[*prompt, *tokens]])
        best = int(np.argmax(log_probs))
        if best in end_tokens(model):
            return tokens, True
        tokens.append(best)
        if "\n" in model.tokenizer.decode(tokens).lstrip():
            return tokens, True
    return tokens, False


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_those_of_whole_passes(model_of, family: str) -> None:
    model = model_of(family)
    # the last is longer than the attention of mistral and gpt_neo reaches back
    texts = ("The old clock", "The old clock in", "Rain fell", "The old clock", tiny_models.TEXTS[0])
    asked = [("Say it.", text) for text in texts]
    prompts = prompt_tokens(model, asked)
    found = generate(model, prompts, max_tokens=6)
    for prompt, text, finished in zip(prompts, found.text, found.finished, strict=True):
        tokens, ended = slow_answer(model, prompt, 6)
        assert text == model.tokenizer.decode(tokens, skip_special_tokens=True)
        assert finished == ended
    assert found.text[0] == found.text[3]


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    """A model whose tokens are letters and a line break."""
    tokenizer = tiny_models.by_hand([*LETTERS[:-1], "Ċ"])
    folder = tiny_models.save(tmp_path_factory.mktemp("writer"), "llama", tokenizer, seed=3)
    return tiny_models.load(folder, bos=tiny_models.END)


def test_an_answer_ends_with_a_token_or_after_a_line(writer) -> None:
    found = generate(writer, [[0, 3, 4], [0, 5]] * 100, max_tokens=6, temperature=2.0, seeds=range(200))
    lines = [text.lstrip("\n").find("\n") for text in found.text]
    for text, finished, line in zip(found.text, found.finished, lines, strict=True):
        assert line in (-1, len(text.lstrip("\n")) - 1)
        assert finished == (line > 0 or len(text) < 6)
    assert 0 < found.finished.sum() < 200
    assert max(lines) > 0


def test_draws_follow_the_distribution(writer) -> None:
    """Answers of two tokens, of which every text is one way to write it: chi-square, at a fixed seed."""
    model, temperature, n = writer, 1.5, 2000
    prompts = [[0, 3, 4], [0, 5]]
    texts = generate(model, prompts * n, max_tokens=2, temperature=temperature, seeds=range(2 * n)).text
    for number, prompt in enumerate(prompts):
        rows = oracle.next_token(
            replace(model, bos_id=None), [prompt, *([*prompt, 1 + i] for i in range(len(LETTERS)))]
        )
        first, *second = np.exp(rows / temperature) / np.exp(rows / temperature).sum(axis=1, keepdims=True)
        exact = {"": first[0]} | {
            a + b: first[1 + i] * p
            for i, a in enumerate(LETTERS)
            for b, p in zip(("", *LETTERS), second[i], strict=True)
        }
        frequent = {text: p * n for text, p in exact.items() if p * n >= 5}
        observed, expected = [texts[number::2].count(text) for text in frequent], list(frequent.values())
        assert len(frequent) > 10
        assert stats.chisquare([*observed, n - sum(observed)], [*expected, n - sum(expected)]).pvalue > 1e-3


def test_what_a_repository_says_of_decoding_changes_no_answer(model_of, folder_of, tmp_path: Path) -> None:
    folder = shutil.copytree(folder_of("llama"), tmp_path / "model")
    said = {"repetition_penalty": 5.0, "suppress_tokens": list(range(300)), "do_sample": True, "top_k": 1}
    (folder / "generation_config.json").write_text(json.dumps({**said, "eos_token_id": 2}))
    changed, plain = tiny_models.load(folder), model_of("llama")
    prompts = prompt_tokens(plain, [("", "Rain fell"), ("", "The old clock")])
    for how in ({}, {"temperature": 1.0, "seeds": [1, 2]}):
        assert (
            generate(changed, prompts, max_tokens=6, **how).text == generate(plain, prompts, max_tokens=6, **how).text
        )


def test_a_draw_depends_on_its_seed_alone(model_of) -> None:
    model = model_of("llama")
    prompts = prompt_tokens(model, [("", "Rain fell"), ("", "The old clock")])
    one = generate(model, prompts, max_tokens=5, temperature=1.5, seeds=[1, 2]).text
    assert one == generate(model, prompts[::-1], max_tokens=5, temperature=1.5, seeds=[2, 1]).text[::-1]
    assert one != generate(model, prompts, max_tokens=5, temperature=1.5, seeds=[3, 4]).text


@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral"])
def test_options_are_first_tokens_with_and_without_a_space(model_of, family: str) -> None:
    model = model_of(family)
    prompts = prompt_tokens(model, [("", "The old clock"), ("", "Rain")])
    found = option_log_probs(model, prompts, ["A", "n"])
    for row, prompt in enumerate(prompts):
        [log_probs] = oracle.next_token(replace(model, bos_id=None), [prompt])
        for column, option in enumerate(("A", "n")):
            ids = option_tokens(model, option)
            assert {model.tokenizer.decode([token]).strip() for token in ids} == {option}
            assert found[row, column] == pytest.approx(np.logaddexp.reduce(log_probs[ids]), abs=1e-4)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_continuations_are_sums_over_their_tokens(model_of, family: str) -> None:
    model = model_of(family)
    contexts = encode(model, ["The old clock", "Rain fell"])
    texts = [[" in", " in the hall"], [" onwards"]]
    found = continuation_log_probs(model, contexts, texts)
    for context, its, values in zip(contexts, texts, found, strict=True):
        for text, value in zip(its, values, strict=True):
            by_hand, before = 0.0, list(context)
            for token in word_tokens(model, text):
                by_hand += oracle.next_token(model, [before])[0][token]
                before.append(token)
            assert value == pytest.approx(by_hand, abs=1e-3)


def test_a_chat_template_writes_the_messages(model_of, folder_of, tmp_path: Path) -> None:
    model = tiny_models.load(folder_of("gpt2"))
    model.tokenizer.chat_template = CHAT
    [both, one] = prompt_tokens(model, [("Be brief.", "Hello"), ("", "Hello")])
    assert model.tokenizer.decode(both) == "<system>Be brief.</><user>Hello</><assistant>"
    assert model.tokenizer.decode(one) == "<user>Hello</><assistant>"
    # a template that knows no system
    model.tokenizer.chat_template = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no') }}{% endif %}" + CHAT
    )
    [merged] = prompt_tokens(model, [("Be brief.", "Hello")])
    assert model.tokenizer.decode(merged) == "<user>Be brief.\n\nHello</><assistant>"
    model.tokenizer.chat_template = "{{ raise_exception('never') }}"
    with pytest.raises(InputError, match="chat template that cannot be filled in: never"):
        prompt_tokens(model, [("Be brief.", "Hello")])
