"""Public norms: rows of each layout become texts, times and answers; real copies are read where they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shannon_game import norms
from shannon_game.estimators.cloze import validate_cloze_study
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.cloze.norms import CORPORA
from tests.conftest import DATA
from tests.experiments.studies.cloze.norms_stand_in import SENTENCES, times_of, write_all

MEASURES = [(name, measure) for name, corpus in CORPORA.items() for measure in corpus.times]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_all(tmp_path_factory.mktemp("norms"))


@pytest.mark.parametrize(("name", "measure"), MEASURES)
def test_every_time_is_of_the_word_that_was_shown(root: Path, name: str, measure: str) -> None:
    study = norms(data=name, root=root / name, form="texts", measure=measure)
    texts = dict(zip(study["document"].to_numpy().tolist(), study["text"].to_numpy().tolist(), strict=True))
    keys = zip(*(study[f"reading_{what}"].to_numpy().tolist() for what in ("text", "word_num", "word")), strict=True)
    assert all(texts[text].split()[number - 1] == word for text, number, word in keys)
    assert study.sizes["reading"] > 0 or (name, measure) == ("onestop", "first_fixation")


def test_times_have_their_values_and_readers(root: Path) -> None:
    study = norms(data="natural_stories", root=root / "natural_stories")
    expected = times_of(SENTENCES, 1)
    assert study["reading_ms"].to_numpy().tolist() == [row[-1] for row in expected]
    # workers' ids are kept nowhere
    assert study["reading_participant"].to_numpy().tolist() == [f"r{row[0]}" for row in expected]
    means = norms(data="natural_stories", root=root / "natural_stories", measure="self_paced_mean")
    assert "reading_participant" not in means
    each = {(str(text), at): [] for _, text, at, _, _ in expected}
    for _, text, at, _, ms in expected:
        each[str(text), at].append(ms)
    keys = zip(means["reading_text"].to_numpy().tolist(), means["reading_word_num"].to_numpy().tolist(), strict=True)
    np.testing.assert_allclose(means["reading_ms"], [np.mean(each[key]) for key in keys])
    # a number that is NA, and a word that was skipped
    provo = norms(data="provo", root=root / "provo", form="texts")
    kept = [row for row in times_of(SENTENCES, 3) if row[2] != 5 and (row[0] + row[2]) % 4]
    assert provo["reading_ms"].to_numpy().tolist() == [row[-1] + 5 for row in kept]
    # practice and repeated trials are no first reading
    assert norms(data="onestop", root=root / "onestop").sizes["reading"] == len(times_of(SENTENCES, 4))


def test_answers_are_those_that_people_gave(root: Path) -> None:
    study = validate_cloze_study(norms(data="peelle", root=root / "peelle"))
    assert study["context"].to_numpy().tolist()[0] == "He hated bees and feared encountering a"
    # proportions of at least 100 answers, to two decimals
    assert study["response_count"].to_numpy().tolist() == [50, 30, 20, 60, 40]
    provo = norms(data="provo", root=root / "provo", form="cloze")
    assert provo["response_count"].to_numpy()[:2].tolist() == [30, 10]
    assert "reading_ms" in provo


def test_answers_in_other_languages_stand_at_their_words(root: Path) -> None:
    german = validate_cloze_study(norms(data="nicenboim", root=root / "nicenboim"))
    assert german["context"].to_numpy().tolist() == ["Sie trinkt einen heißen", "Er kauft einen großen"]
    # people are numbers, and a blank is no word
    assert set(german["participant"].to_numpy().tolist()) == {"r1", "r2", "r3"}
    spanish = validate_cloze_study(norms(data="bianchi", root=root / "bianchi"))
    first = spanish.isel(item=spanish["text_id"].to_numpy() == "3 axolotl")
    # accents, marks and the word that the table lacks are the story's
    assert first["context"].to_numpy().tolist()[-1] == "¿Qué pasó? Había — un niño muy"
    assert first["target_word"].to_numpy().tolist() == ["pasó?", "Había", "un", "niño", "solo."]
    assert first["word_num"].to_numpy().tolist() == [2, 3, 5, 6, 8]
    # three answers a word, of which two are alike, but for the word that all of them are
    assert spanish["response_count"].to_numpy().sum() == 3 * spanish.sizes["item"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"data": "peele"}, "unknown data 'peele'; did you mean 'peelle'"),
        ({}, "data: is None; data=.NAME. is one of natural_stories: Natural Stories"),
        ({"data": "peelle", "form": "texts"}, "form 'texts'"),
        ({"data": "ucl", "measure": "first_pas"}, "measure 'first_pas'"),
        ({"data": "natural_stories", "root": Path("/nowhere")}, "there is no all_stories.tok; it is at https"),
    ],
)
def test_what_is_not_there_is_named(root: Path, settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        norms(**{"root": root / str(settings.get("data")), **settings})


REAL = {
    ("natural_stories", "self_paced_mean"): ("all_stories.tok", (10, 10256)),
    ("natural_stories", "self_paced"): ("processed_RTs.tsv", (10, None)),
    ("ucl", "first_pass"): ("eyetracking.RT.txt", (361, 81_109)),
    ("devarda", "self_paced"): ("list8.xls", (205, 1_726)),
    ("peelle", None): ("output.tsv", (3_085, None)),
    ("nicenboim", None): ("answers_annotated_before_noun_CORRECTED.tsv", (1_131, None)),
    ("bianchi", None): ("predictability.csv", (26_358, None)),
    ("meco_german", "first_pass"): ("ge.csv", (12, 2_026)),
    ("provo", None): ("Provo_Corpus-Eyetracking_Data.csv", (55, None)),
}


@pytest.mark.parametrize(("name", "measure"), REAL)
def test_a_real_copy_has_its_published_size(name: str, measure: str | None) -> None:
    file, (n_texts, n_times) = REAL[name, measure]
    if not (DATA / "norms" / name / file).is_file():
        pytest.skip(f"no {file} in $SHANNON_DATA/norms/{name}")
    study = norms(data=name, measure=measure, root=DATA / "norms" / name)
    assert study.sizes.get("document", study.sizes.get("item")) == n_texts
    assert n_times is None or study.sizes["reading"] == n_times
    if name == "devarda":
        answers = norms(data=name, form="cloze", root=DATA / "norms" / name)
        # 630 people, every word of the 205 sentences after the first
        assert answers.sizes["item"] == 1_726
        assert len(set(answers["participant"].to_numpy().tolist())) == 630
