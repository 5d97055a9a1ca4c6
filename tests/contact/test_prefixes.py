"""What stands before a scored text, beside a plain script over transformers: a prompt, a chat's turn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="language models need the extra lm")

from shannon_game import experiments
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.documents.texts import text_study
from tests.inference.lm import tiny_models
from tests.inference.lm.tiny_models import END, byte_level, sentencepiece
from tests.oracles.transformers_alone import loaded, surprisal_nats

pytestmark = pytest.mark.torch

TURNS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PROMPT = "They walked home, and then"
SAYS = ["the lamps were lit.", "nobody moved at all.", "the"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root, chat = tmp_path_factory.mktemp("prefixes"), byte_level()
    chat.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    chat.chat_template = TURNS
    made = {"gpt2": byte_level(), "llama": sentencepiece(), "chat": chat}
    return {
        name: tiny_models.save(root / name, "llama" if name == "llama" else "gpt2", its) for name, its in made.items()
    }


@pytest.mark.parametrize(("name", "bos"), [("gpt2", END), ("llama", "<s>")])
def test_a_prompt_is_seen_and_not_scored(name: str, bos: str, folders: dict[str, Path], tmp_path: Path) -> None:
    model = {name: {"source": "folder", "path": str(folders[name]), "bos": bos}}
    found = experiments.surprisal(SAYS, models=model, store=tmp_path, prefix=PROMPT)
    made, _ = loaded(folders[name])
    start = made.convert_tokens_to_ids(bos)
    for number, text in enumerate(SAYS, start=1):
        head, whole = (made(its, add_special_tokens=False)["input_ids"] for its in (PROMPT, f"{PROMPT} {text}"))
        assert whole[: len(head)] == head
        own = found.tables["tokens"].loc[lambda table, document=str(number): table["document"] == document]
        expected = surprisal_nats(folders[name], [start, *head], whole[len(head) :])
        np.testing.assert_allclose(own["surprisal_nats"], expected, rtol=2e-5)
        words = found.tables["words"].loc[lambda table, document=str(number): table["document"] == document]
        assert words["word"].tolist() == text.split()
        np.testing.assert_allclose(words["sum_bits"].sum() * np.log(2), expected.sum(), rtol=2e-5)
    assert found.table["n_words"].item() == sum(len(text.split()) for text in SAYS)


def test_a_text_whose_end_does_not_see_the_prompt_is_noted(folders: dict[str, Path], tmp_path: Path) -> None:
    model = {"gpt2": {"source": "folder", "path": str(folders["gpt2"])}}
    found = experiments.surprisal(SAYS, models=model, store=tmp_path, prefix=PROMPT, window=8, stride=4)
    assert any("words at their ends do not see the prefix" in text for text in found.warnings)
    whole = experiments.surprisal(SAYS, models=model, store=tmp_path, prefix=PROMPT)
    assert not any("do not see the prefix" in text for text in whole.warnings)


def test_a_chats_answer_is_scored_after_the_users_turn(folders: dict[str, Path], tmp_path: Path) -> None:
    made, _ = loaded(folders["chat"])
    turn = [{"role": "user", "content": PROMPT}]
    head = made.apply_chat_template(turn, add_generation_prompt=True, tokenize=True, return_dict=False)
    found = experiments.surprisal(SAYS, models=[str(folders["chat"])], store=tmp_path, prefix=PROMPT, chat=True)
    for number, text in enumerate(SAYS, start=1):
        ids = made(text, add_special_tokens=False)["input_ids"]
        own = found.tables["tokens"].loc[lambda table, document=str(number): table["document"] == document]
        np.testing.assert_allclose(own["surprisal_nats"], surprisal_nats(folders["chat"], head, ids), rtol=2e-5)
        assert own["token_num"].tolist() == list(range(1, len(ids) + 1))
        assert "".join(own["token"]) == text
    again = experiments.surprisal(SAYS, models=[str(folders["chat"])], store=tmp_path, prefix=PROMPT, chat=True)
    assert again.tables["tokens"].equals(found.tables["tokens"])
    assert "0 results were computed" in again.text


def test_what_cannot_stand_before_a_text_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    model = {"models": [str(folders["gpt2"])], "store": tmp_path}
    with pytest.raises(InputError, match="gpt2 has no chat template"):
        experiments.surprisal(SAYS, **model, prefix=PROMPT, chat=True)
    with pytest.raises(InputError, match="turn is missing"):
        experiments.surprisal(SAYS, **model, chat=True)
    grouped = text_study(pd.DataFrame({"text": SAYS, "story": ["a"] * 3}), group_field="story")
    with pytest.raises(InputError, match="context=text"):
        experiments.surprisal(grouped, **model, prefix=PROMPT, context="text")
