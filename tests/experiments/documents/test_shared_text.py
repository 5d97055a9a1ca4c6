"""The same characters under models of different tokenizers: by hand, and where the answer is the same to the digit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shannon_game.estimators.documents import unit_loss
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.documents.scored import Span, inside, shared_span
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.inference.lm.alignment import token_places
from shannon_game.inference.lm.language_model import encode
from shannon_game.inference.lm.scored import units_of
from tests.experiments.command import run_experiment
from tests.experiments.documents.test_surprisal import overrides
from tests.inference.lm import exact_word_models, tiny_models
from tests.oracles import language_model as reference

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

N_TEXTS = 4


@pytest.fixture(scope="module")
def words_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words")
    exact_word_models.save_by_word(folder / "a")
    exact_word_models.save_by_character(folder / "b")
    (folder / "texts").mkdir()
    for number in range(N_TEXTS):
        (folder / "texts" / f"{number}.txt").write_text(exact_word_models.text(20 + number, seed=number))
    return folder


def shared(root: Path, store: Path, *more: str, names: tuple[str, ...] = ("a", "d"), bos: str = tiny_models.END):
    return run_experiment(*overrides(root, store, *names, bos=bos), "experiment.characters=shared", *more)


def test_all_models_score_exactly_the_same_characters_by_hand(root: Path, tmp_path: Path) -> None:
    result = shared(root, tmp_path)
    table = result.table.drop_duplicates("model", keep="last").set_index("model")
    totals = {"a": 0.0, "d": 0.0}
    n_bytes = n_words = 0
    models = {"a": tiny_models.load(root / "a", bos=tiny_models.END), "d": tiny_models.load(root / "d", bos="<s>")}
    for path in sorted(root.glob("texts/*/*.txt")):
        text = path.read_text()
        tokens = {name: encode(model, [text])[0] for name, model in models.items()}
        places = {name: token_places(model, text, tokens[name]) for name, model in models.items()}
        both = sorted(set(places["a"].tolist()) & set(places["d"].tolist()))
        assert (both[0], both[-1]) == (0, len(text.encode()))
        n_bytes += both[-1]
        n_words += len(text.split())
        for name, model in models.items():
            rows = reference.log_probs(model, reference.started(model, tokens[name]))
            totals[name] -= sum(row[token] for row, token in zip(rows, tokens[name], strict=False))
    for name, total in totals.items():
        row = table.loc[name]
        assert (row["n_bytes"], row["n_characters"], row["n_words"]) == (n_bytes, n_bytes, n_words)
        assert row["bits_per_character"] == pytest.approx(total / np.log(2) / n_bytes, rel=1e-5)
        assert row["bits_per_byte"] == pytest.approx(total / np.log(2) / n_bytes, rel=1e-5)
        assert row["loss_nats_per_word"] == pytest.approx(total / n_words, rel=1e-5)
        assert row["bits_per_token"] == pytest.approx(row["loss_nats"] / np.log(2))


def exact_bits(root: Path, start: int) -> float:
    texts = [path.read_text() for path in sorted((root / "texts").glob("*.txt"))]
    return (
        sum(exact_word_models.loss_nats(text[start:]) for text in texts)
        / np.log(2)
        / sum(len(text) - start for text in texts)
    )


@pytest.mark.parametrize(("bos", "start"), [(tiny_models.END, 0), ("none", 3)])
def test_word_models_have_the_same_bits_a_character_whatever_their_tokens(
    bos: str, start: int, words_root: Path, tmp_path: Path
) -> None:
    result: ExperimentResult = shared(words_root, tmp_path, names=("a", "b"), bos=bos)
    table = result.table.drop_duplicates("model", keep="last").set_index("model")
    # without a BOS token the first token has no score, which is a word of the one model and a space of the other
    for name in "ab":
        assert table.loc[name, "bits_per_character"] == pytest.approx(exact_bits(words_root, start), abs=1e-4)
        assert table.loc[name, "n_characters"] == sum(3 * (20 + i) - start for i in range(N_TEXTS))
    assert table.loc["b", "n_tokens"] == 3 * table.loc["a", "n_tokens"]
    if bos == "none":
        apart = run_experiment(*overrides(words_root, tmp_path, "a", "b", bos=bos))
        bits = apart.table.drop_duplicates("model", keep="last").set_index("model")["bits_per_character"]
        assert abs(bits["a"] - bits["b"]) > 0.001


def test_nothing_shared_is_an_error(words_root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="characters: is 'shared', but in no document do all models"):
        shared(words_root, tmp_path, "experiment.max_tokens=2", names=("a", "b"), bos="none")


@given(st.lists(st.text("aé日 ", min_size=1, max_size=4), min_size=1, max_size=8), st.data())
def test_spans_hold_whole_tokens_of_every_model(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    size = len(text.encode())
    places = [np.array(sorted({0, size, *data.draw(st.lists(st.integers(0, size), max_size=8))})) for _ in range(2)]
    span = shared_span(text, places)
    assert span == Span(0, size)
    late = [its[data.draw(st.integers(0, len(its) - 1)) :] for its in places]
    span = shared_span(text, late)
    if span is None:
        return
    for its in late:
        tokens = inside(its, span)
        # what is inside fills the span without a gap
        assert its[:-1][tokens][0] == span.start
        assert its[1:][tokens][-1] == span.stop
        assert (its[1:][tokens] - its[:-1][tokens]).sum() == span.stop - span.start
    words, characters, n_bytes = units_of(span.of(text), "spaces")
    part = span.of(text).decode()
    assert (words, characters, n_bytes) == (len(part.split()), len(part), len(part.encode()))


def test_unit_losses_by_hand() -> None:
    found = unit_loss([2.0, 6.0, 1.0], [1, 4, 1])
    assert found.nats.mean == pytest.approx(1.5)
    assert found.nats.se == pytest.approx(np.sqrt(1.5 * (0.5**2 + 0 + 0.5**2)) / 6)
    assert found.bits.mean == pytest.approx(1.5 / np.log(2))
    assert np.isnan(unit_loss([1.0], [2]).nats.se)
    assert np.isnan(unit_loss([1.0, 2.0], [0, 0]).nats.mean)
