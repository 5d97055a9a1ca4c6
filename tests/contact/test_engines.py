"""Engines of one's own: objects, classes named in YAML, model objects of lm-eval; beside the toolkit's own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import shannon_game as sg
from shannon_game.estimators.errors import InputError
from shannon_game.inference import lm
from tests.experiments.command import run_experiment

TEXTS = ["The old clock in the hall.", "Rain fell on the road."]
PAIRS = pd.DataFrame({"good": ["Rain fell.", "They walked home."], "bad": ["Rain falled.", "They walks home."]})
CONTEXTS = ("the cook stirred the", "she opened the", "he ate the")
SAID = (("soup", "pot"), ("door", "box"), ("soup", "bread"))

CODE = '''
class Even:
    """Every word of a text as probable as the others of so many."""

    whole_words = True

    def __init__(self, size):
        self.size, self.key = size, f"even {size}"

    def score(self, texts):
        import numpy as np
        return [np.full(len(text.split()), -np.log(self.size)) for text in texts]

    def next_word(self, contexts, words):
        import numpy as np
        return [np.full(len(some), -np.log(self.size)) for some in words]
'''


class Even:
    """Every word as probable as any other of a hundred, by as little as a question asks for."""

    whole_words = True

    def score(self, texts: list[str]) -> list[Any]:
        return [[-np.log(100)] * len(text.split()) for text in texts]


class Wrapped:
    """The toolkit's own engine, as a user's class hands it on."""

    name, key = "wrapped", "wrapped 1"

    def __init__(self, inner: Any) -> None:
        for method in ("encode", "score", "next_token", "next_word", "generate"):
            setattr(self, method, getattr(inner, method))


class Harness:
    """A model object with the interface of ``lm_eval.api.model.LM``, over the toolkit's own engine."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        contexts, strings = zip(*(request.args for request in requests), strict=True)
        return [(float(its[0]), False) for its in self.inner.next_token(contexts, [[its] for its in strings])]

    def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
        return [
            float(row["logprob"].sum(dtype=float))
            for row in self.inner.score([request.args[0] for request in requests])
        ]

    def generate_until(self, requests: list[Any]) -> list[str]:
        prompts, how = zip(*(request.args for request in requests), strict=True)
        most = how[0]["max_gen_toks"]
        return list(self.inner.generate(list(prompts), max_tokens=most))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("torch", reason="language models need the extra lm")
    from tests.inference.lm import tiny_models

    folder = tiny_models.save(tmp_path_factory.mktemp("engines") / "tiny", "gpt2", tiny_models.byte_level())
    settings = lm.ModelSettings(name="tiny", source="folder", path=str(folder), bos=tiny_models.END)
    return SimpleNamespace(settings=settings, engine=lm.open_engine("tiny", settings))


def cloze(n: int = 6) -> Any:
    rows = [(context, word, f"t{at}") for at, context in enumerate(CONTEXTS) for word in SAID[at] * (n // 2)]
    return sg.cloze_study(pd.DataFrame(rows, columns=["context", "response", "text_id"]))


@pytest.mark.torch
def test_an_engine_that_hands_on_the_toolkits_own_has_its_numbers_in_every_question(tiny: Any, tmp_path: Path) -> None:
    both: dict[str, Any] = {"models": {"tiny": tiny.settings, "wrapped": Wrapped(tiny.engine)}, "store": tmp_path}

    def same(table: pd.DataFrame, *columns: str) -> None:
        kinds = [its.reset_index(drop=True) for _, its in table.groupby("model", sort=False)]
        assert len(kinds) == 2
        for column in columns:
            assert kinds[0][column].notna().any()
            np.testing.assert_allclose(kinds[1][column], kinds[0][column], rtol=1e-6, atol=1e-6)

    scored = sg.surprisal(TEXTS, **both)
    same(scored.tables["words"], "surprisal_bits", "sum_bits", "entropy_nats", "rank", "start", "n_tokens")
    same(scored.table, "loss_nats", "bits_per_byte", "top1_accuracy", "perplexity_upper")
    same(sg.minimal_pairs(PAIRS, **both).tables["pairs"], "good_sum_nats", "bad_sum_nats", "good_n_tokens")
    built = sg.build_cloze(cloze(), n_samples=4, **both)
    built.writers["study.nc"](tmp_path / "study.nc")
    study = sg.cloze_file(path=tmp_path / "study.nc")
    entry, word, nats = (study[f"sample_{name}"].to_numpy() for name in ("entry", "word", "logprob"))
    model, item = (study[f"entry_{name}"].to_numpy()[entry] for name in ("model", "item"))
    by = {
        name: dict(zip(zip(item[own], word[own], strict=True), nats[own], strict=True))
        for name in both["models"]
        for own in [(study["model"].to_numpy()[model] == name) & np.isfinite(nats)]
    }
    common = by["tiny"].keys() & by["wrapped"].keys()
    assert len(common) >= sum(map(len, SAID))
    for key in common:
        assert by["wrapped"][key] == pytest.approx(by["tiny"][key], rel=1e-6)
    distances = sg.tvd(cloze(), **both).table
    np.testing.assert_allclose(distances["tvd"].iloc[1], distances["tvd"].iloc[0], rtol=1e-6)


@pytest.mark.torch
def test_a_model_object_of_lm_eval_has_the_sums_over_words(tiny: Any, tmp_path: Path) -> None:
    models = {"tiny": tiny.settings, "harness": Harness(tiny.engine)}
    found = sg.surprisal(TEXTS, models=models, store=tmp_path)
    words = {str(name): its for name, its in found.tables["words"].groupby("model")}
    np.testing.assert_allclose(words["harness"]["sum_bits"], words["tiny"]["sum_bits"], rtol=1e-6)
    assert words["harness"]["surprisal_bits"].isna().all()
    assert any("where a word ends" in note for note in found.warnings)
    pairs = sg.minimal_pairs(PAIRS, models=models, store=tmp_path).tables["pairs"].set_index("model")
    np.testing.assert_allclose(pairs.loc["harness", "difference_nats"], pairs.loc["tiny", "difference_nats"], atol=1e-5)
    # what it draws goes on with the text, and its probabilities of words are of more than the word
    built = sg.build_cloze(cloze(), models=[Harness(tiny.engine)], n_samples=4, store=tmp_path)
    assert built.table["player"].tolist() == ["Harness", "Harness-exact"]
    assert any("leave out that the word ends" in note for note in built.warnings)


def test_a_class_is_named_in_yaml_and_its_results_are_found_by_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "even_in_yaml.py").write_text(CODE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "a.txt").write_text(TEXTS[0], encoding="utf-8")

    def asked(size: int) -> Any:
        model = f"+models.even={{_target_: even_in_yaml.Even, size: {size}}}"
        return run_experiment("+exp=surprisal", f"study.path={tmp_path}", model, f"experiment.store={tmp_path / 's'}")

    first = asked(64)
    assert first.tables["words"]["surprisal_bits"].tolist() == pytest.approx([6.0] * 6)
    assert first.table["model"].item() == "even"
    assert "1 results were computed, 0 were" in first.text
    assert "0 results were computed, 1 were" in asked(64).text
    assert asked(32).tables["words"]["surprisal_bits"].tolist() == pytest.approx([5.0] * 6)


def test_engines_stand_beside_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(context, word) for at, context in enumerate(CONTEXTS) for word in SAID[at] * 3]
    pd.DataFrame(rows, columns=["context", "response"]).to_csv(tmp_path / "answers.csv", index=False)
    entry = "name: mine\nability: next_words\nstudy: cloze_table\nsettings: {path: answers.csv}\nlicence: '-'\n"
    (tmp_path / "mine.yaml").write_text(entry + "citation: '-'\n", encoding="utf-8")
    (tmp_path / "even_beside_people.py").write_text(CODE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    models = {"even": {"_target_": "even_beside_people.Even", "size": 64}, "lacks": Even()}
    found = sg.beside_people(corpora=["mine.yaml"], models=models, n_replicates=20, store=tmp_path / "s")
    scores = found.table[(found.table["model"] == "even") & (found.table["score"] == "cross_entropy")]
    assert scores["value"].item() == pytest.approx(np.log(64) - np.log(1), abs=np.log(4))
    assert any("lacks" in note and "has no next_word" in note for note in found.warnings)


def even(**methods: Any) -> Any:
    """An engine with some methods, as functions of what they are asked."""
    return type("Even", (), {name: staticmethod(its) for name, its in methods.items()})()


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        (even(score=lambda texts: [[-1.0]] * len(texts)), "shape"),
        (even(score=lambda texts: [[-1.0]]), "texts"),
        (even(score=lambda texts: [[-1.0] * (len(text.split()) - 1) + [np.nan] for text in texts]), "NaN"),
        (even(score=lambda texts: [[0.3] * len(text.split()) for text in texts]), "at most 0"),
        (even(score=lambda texts: [[-np.inf] * len(text.split()) for text in texts]), "-inf"),
        (even(score=lambda texts: [["a"] * len(text.split()) for text in texts]), "numbers"),
        (even(score=lambda texts: [], encode=lambda texts: [[1, 2]] * len(texts)), "encode"),
        (even(score=lambda texts: [[-1.0]] * 2, encode=lambda texts: [["x"]] * len(texts)), "joined"),
        (even(next_word=lambda contexts, words: []), "has no score"),
        (object(), "should be an engine"),
    ],
)
def test_what_an_engine_gives_is_checked_in_one_line(engine: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said) as refused:
        sg.surprisal(TEXTS, models={"mine": engine}, store=tmp_path)
    assert "mine" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_an_engine_cannot_take_is_refused(tmp_path: Path) -> None:
    for changes, said in ({"window": 5}, "whole texts"), ({"prefix": "Say:", "chat": True}, "chat template"):
        with pytest.raises(InputError, match=said):
            sg.surprisal(TEXTS, models=[Even()], store=tmp_path, **changes)
    # what cuts contexts by tokens takes models of the toolkit alone
    with pytest.raises(InputError, match="engine of your own"):
        sg.context_length(sg.text_study(TEXTS), models=[Even()], store=tmp_path)
    for target, said in ("os.system", "class of an engine"), ("nowhere.Mine", "cannot be imported"):
        with pytest.raises(InputError, match=said):
            sg.surprisal(TEXTS, models={"mine": {"_target_": target}}, store=tmp_path)
    with pytest.raises(InputError, match="cannot be made"):
        sg.surprisal(TEXTS, models={"mine": {"_target_": f"{__name__}.Even", "size": 3}}, store=tmp_path)


def test_settings_with_an_engine_can_be_written(tmp_path: Path) -> None:
    from shannon_game.experiments.documents.surprisal import SurprisalSettings

    stored = SurprisalSettings(models=[Even()]).model_dump(mode="json")["models"]["Even"]
    assert stored["target"].endswith("Even")
    assert "given" not in stored
