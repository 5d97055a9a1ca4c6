"""Texts as people have them under every kind of tokenizer, beside a plain loop over transformers' own objects.

The sum over a text's tokens is its log-probability, and a word without a number is one that a line names.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="language models need the extra lm")

from shannon_game import experiments
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.studies.documents.texts import text_study
from tests.inference.lm import tiny_models
from tests.inference.lm.tiny_models import END, TEXTS, byte_level, sentencepiece
from tests.oracles.transformers_alone import loaded, surprisal_nats

pytestmark = pytest.mark.torch


def unigram() -> Any:
    """In the manner of SentencePiece's default: NFKC, white space folded, no bytes to fall back on."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.Unigram())
    # as nmt_nfkc: invisible characters are deleted or made a space, white space is folded
    made.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex("[\u00ad\ufeff]"), ""),
            normalizers.Replace(Regex("[\\s\u200b]"), " "),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
            normalizers.Strip(),
        ]
    )
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=160, special_tokens=["<unk>", "<s>", "</s>"], unk_token="<unk>", show_progress=False
    )
    made.train_from_iterator([text for text in TEXTS if text.isascii()], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def word_pieces() -> Any:
    """In the manner of Chinese GPT-2, which has BERT's tokenizer: lower case, [CLS] before a text and [SEP] after."""
    from tokenizers import trainers
    from transformers import BertTokenizer

    made = BertTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=150, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False
    )
    made.backend_tokenizer.train_from_iterator([*TEXTS, "我们 读 书"], trainer)
    return BertTokenizer(vocab=made.backend_tokenizer.get_vocab())


def ends_of_words() -> Any:
    """In the manner of GPT-1: pieces that end a word say so by </w>, and nothing stands before a text."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.BPEDecoder(suffix="</w>")
    trainer = trainers.BpeTrainer(
        vocab_size=220, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False
    )
    made.train_from_iterator(TEXTS, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>")


def ignoring_merges() -> Any:
    """In the manner of tiktoken's conversions: NFC, the pattern of GPT-4, whole pieces taken before any merge."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    split = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    made = Tokenizer(models.BPE(ignore_merges=True))
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(split), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    made.train_from_iterator(TEXTS, trainer)
    made.add_special_tokens([END, "<|begin_of_text|>"])
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<|begin_of_text|>", eos_token=END)


KINDS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "byte_level": (byte_level, "gpt2", END),
    "byte_fallback": (sentencepiece, "llama", "<s>"),
    "nfkc": (unigram, "llama", "<s>"),
    "word_pieces": (word_pieces, "gpt2", "[CLS]"),
    "ends_of_words": (ends_of_words, "gpt2", ""),
    "ignoring_merges": (ignoring_merges, "llama", "<|begin_of_text|>"),
}
EDGES = {
    "plain": "The old clock struck nine.",
    "curly": "He didn\u2019t say \u201cquotes\u201d then.",
    "tab": "The old\tclock struck nine.",
    "newline": "The old clock\nstruck nine.\n",
    "nbsp": "The old\u00a0clock struck nine.",
    "emoji": "She walked 😀 home.",
    "composed": "The café was lit.",
    "decomposed": "The cafe\u0301 was lit.",
    "ligature": "The ﬁrst ½ roof.",
    "arabic": "Rain مرحبا fell.",
    "bom": "\ufeffThe old clock.",
    "zero_width": "The old \u200bclock struck.",
    "soft_hyphen": "The read\u00ader wrote.",
    "double_space": "The old  clock struck. ",
    "end": f"Before {END} after.",
    "start": "Please <s> walk </s> home.",
    "class": "Please [SEP] walk home.",
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("kinds")
    return {kind: tiny_models.save(root / kind, family, make()) for kind, (make, family, _) in KINDS.items()}


def plain_loop(folder: Path, text: str, start: str) -> float:
    """Log-probability of a text, token by token, by transformers alone; what a text holds is text."""
    tokenizer, _ = loaded(folder)
    ids = tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    ids = [*([tokenizer.convert_tokens_to_ids(start)] if start else []), *ids]
    return -float(surprisal_nats(folder, ids[:1], ids[1:]).sum())


@pytest.mark.parametrize("kind", KINDS)
def test_every_text_has_its_log_probability_and_a_line_for_each_word_without_one(
    kind: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    start, edges = KINDS[kind][2], dict(EDGES)
    models = {kind: {"source": "folder", "path": str(folders[kind]), "bos": start or "none"}}

    def surprisal() -> ExperimentResult:
        study = text_study(pd.DataFrame({"item": list(edges), "text": list(edges.values())}), id_field="item")
        return experiments.surprisal(study, models=models, store=tmp_path)

    if kind == "nfkc":
        # its vocabulary has the special tokens among the pieces: no other way to write them
        with pytest.raises(InputError, match="document 'start' holds '<s>', a special token of nfkc"):
            surprisal()
        del edges["start"]
    found = surprisal()
    words, tokens = found.tables["words"], found.tables["tokens"]
    lines = "\n".join(found.warnings)
    for name, text in edges.items():
        nats = tokens.loc[tokens["document"] == name, "surprisal_nats"]
        expected = -plain_loop(folders[kind], text, start)
        np.testing.assert_allclose(nats.sum(), expected, rtol=1e-5, err_msg=name)
        own = words[words["document"] == name]
        assert own["word"].tolist() == text.split()
        missing = own.loc[own["sum_bits"].isna() & (own["word_num"] > int(not start)), "word"].tolist()
        assert not missing, name
        if not text.endswith((" ", "\n")) and start:
            np.testing.assert_allclose(own["sum_bits"].sum() * np.log(2), expected, rtol=1e-5, err_msg=name)
    unknown = {
        "nfkc": ("curly", "emoji"),
        "word_pieces": ("curly", "emoji", "ligature"),
        "ends_of_words": ("curly", "emoji", "ligature"),
    }
    assert all(f"{name} (" in lines for name in unknown.get(kind, ()))
    assert ("sum_bits" in lines) == words["surprisal_bits"].isna().all() == (kind in ("word_pieces", "ends_of_words"))
    assert f"Before each text stands {start or 'none'}" in found.text


# as SmolLM2-Instruct and its like have them; Llama 2 opens a conversation by <s>, DialoGPT ends turns by its BOS token
TURNS = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
ONCE = "<s>{% for m in messages %}{{ m.content }}{% endfor %}</s>"
ENDS = "{% for m in messages %}{{ m.content }}" + END + "{% endfor %}"


@pytest.mark.parametrize(
    ("template", "bos", "start", "is_doubted"),
    [
        (TURNS, "<|im_start|>", END, True),
        ("", "<|im_start|>", END, True),
        ("{{ raise_exception('no such role') }}", "<|im_start|>", END, True),
        (ONCE, "<s>", "<s>", False),
        (ENDS, END, END, False),
    ],
)
def test_no_turn_of_a_chat_opens_before_a_text(
    template: str, bos: str, start: str, *, is_doubted: bool, tmp_path: Path
) -> None:
    tokenizer = byte_level()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"], "bos_token": bos})
    tokenizer.chat_template = template or None
    folder = tiny_models.save(tmp_path / "chat", "gpt2", tokenizer)
    found = experiments.surprisal(["Banana is a fruit."], models=[str(folder)], store=tmp_path / "store")
    expected = -plain_loop(folder, "Banana is a fruit.", start)
    np.testing.assert_allclose(found.tables["tokens"]["surprisal_nats"].sum(), expected, rtol=1e-5)
    assert f"Before each text stands {start} " in found.text
    assert any(bos in line and start in line for line in found.warnings) == is_doubted


def test_a_chat_model_without_a_start_of_text_is_asked_for_one(tmp_path: Path) -> None:
    tokenizer = ends_of_words()
    tokenizer.add_special_tokens({"bos_token": "<|user|>"})
    folder = tiny_models.save(tmp_path / "chat", "gpt2", tokenizer)
    with pytest.raises(InputError, match=r"BOS token <\|user\|> opens a turn"):
        experiments.surprisal(["Rain fell."], models=[str(folder)], store=tmp_path / "store")
    given = {"chat": {"source": "folder", "path": str(folder), "bos": "none"}}
    found = experiments.surprisal(["Rain fell."], models=given, store=tmp_path / "store")
    assert "Before each text stands none" in found.text
