"""Invented rows in the exact layout of each public data set, in a folder of its name."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

from shannon_game.experiments.studies.cloze.norms import CORPORA

SENTENCES = [
    "Anne lost control and laughed.",
    "Billy wrote on the envelope.",
    "He called over his shoulder.",
    "Nobody moved until the rain had stopped.",
    "The old clock struck nine.",
    "We barely escaped with our lives.",
]
N_READERS = 6


def times_of(sentences: list[str], seed: int) -> list[tuple[int, int, int, str, int]]:
    """Reader, text, word number, word and milliseconds; everybody reads everything."""
    rng = np.random.default_rng(seed)
    rows = []
    for reader in range(1, N_READERS + 1):
        level = rng.normal(300, 30)
        for text, sentence in enumerate(sentences, start=1):
            for number, word in enumerate(sentence.split(), start=1):
                rows.append((reader, text, number, word, int(level + 8 * len(word) + rng.normal(0, 20))))
    return rows


def natural_stories(folder: Path) -> None:
    words = [(word, at, text) for text, its in enumerate(SENTENCES, start=1) for at, word in enumerate(its.split(), 1)]
    tok = pd.DataFrame(words, columns=["word", "zone", "item"])
    tok.to_csv(folder / "all_stories.tok", sep="\t", index=False)
    times = pd.DataFrame(times_of(SENTENCES, 1), columns=["WorkerId", "item", "zone", "word", "RT"])
    times = times.assign(WorkerId="A" + times["WorkerId"].astype(str), WorkTimeInSeconds=900, correct=6)
    means = times.groupby(["word", "zone", "item"], as_index=False)["RT"].agg(["size", "mean", "std"])
    means = means.rename(columns={"size": "nItem", "mean": "meanItemRT", "std": "sdItemRT"})
    means.assign(gmeanItemRT=1.0, gsdItemRT=1.0).to_csv(folder / "processed_wordinfo.tsv", sep="\t", index=False)
    times.assign(nItem=6, meanItemRT=1.0).to_csv(folder / "processed_RTs.tsv", sep="\t", index=False)


def ucl(folder: Path) -> None:
    stimuli = pd.DataFrame({"sent_nr": range(1, 7), "sentence": SENTENCES, "question": "-", "answer": "-"})
    columns = ["subj_nr", "sent_nr", "word_pos", "word", "RT"]
    times = pd.DataFrame(times_of(SENTENCES, 2), columns=columns).assign(sent_pos=1, correct="-", answer_time="NaN")
    eyes = times.drop(columns="RT")
    for at, name in enumerate(["RTfirstfix", "RTfirstpass", "RTrightbound", "RTgopast"]):
        # a word that was not fixated has zero
        eyes[name] = np.where(np.arange(len(times)) % 5 == 0, 0, times["RT"] + at)
    with zipfile.ZipFile(folder / "13428_2012_313_MOESM1_ESM.zip", "w") as archive:
        for name, table in {"stimuli": stimuli, "selfpacedreading.RT": times, "eyetracking.RT": eyes}.items():
            archive.writestr(f"13428_2012_313_MOESM1_ESM/{name}.txt", table.to_csv(sep="\t", index=False))


def provo(folder: Path) -> None:
    norms, eyes = [], []
    for text, sentence in enumerate(SENTENCES, start=1):
        for number, word in enumerate(sentence.split()[1:], start=2):
            for response, count in ((word.strip("."), 30), ("thing", 10)):
                norms.append({
                    "Word_Unique_ID": f"QID{text}{number}", "Text_ID": text, "Text": sentence, "Word_Number": number,
                    "Sentence_Number": 1, "Word_In_Sentence_Number": number, "Word": word.strip("."),
                    "Response": response, "Response_Count": count, "Total_Response_Count": 40,
                })  # fmt: skip
    for who, text, number, word, ms in times_of(SENTENCES, 3):
        skipped = (who + number) % 4 == 0
        eyes.append({
            "Participant_ID": f"Sub{who:02d}", "Word_Unique_ID": f"QID{text}{number}", "Text_ID": text,
            "Word_Number": "NA" if number == 5 else number, "Word": word, "IA_ID": number,
            "IA_FIRST_FIXATION_DURATION": "NA" if skipped else ms,
            "IA_FIRST_RUN_DWELL_TIME": "NA" if skipped else ms + 5,
            "IA_DWELL_TIME": 0 if skipped else ms + 30, "IA_REGRESSION_PATH_DURATION": "NA" if skipped else ms + 20,
        })  # fmt: skip
    pd.DataFrame(norms).to_csv(folder / "Provo_Corpus-Predictability_Norms.csv", index=False)
    pd.DataFrame(eyes).to_csv(folder / "Provo_Corpus-Eyetracking_Data.csv", index=False)


def onestop(folder: Path) -> None:
    rows = []
    for practice, repeated in ((False, False), (True, False), (False, True)):
        for who, text, number, word, ms in times_of(SENTENCES, 4):
            rows.append({
                "participant_id": f"l1_{who}", "article_batch": 1, "article_id": 1, "difficulty_level": "Adv",
                "paragraph_id": text, "practice_trial": practice, "repeated_reading_trial": repeated,
                "paragraph": SENTENCES[text - 1], "IA_ID": number, "IA_LABEL": word, "IA_DWELL_TIME": ms + 9,
                "IA_FIRST_RUN_DWELL_TIME": ms, "IA_FIRST_FIXATION_DURATION": ".",
                "IA_REGRESSION_PATH_DURATION": ms + 3,
            })  # fmt: skip
    with zipfile.ZipFile(folder / "ia_Paragraph_ordinary.csv.zip", "w") as archive:
        archive.writestr("ia_Paragraph_ordinary.csv", pd.DataFrame(rows).to_csv(index=False))


def peelle(folder: Path) -> None:
    hated = "He hated bees and feared encountering a __________."
    called = "Grace laughed when he called her a __________."
    table = [
        [hated, 3, 1.5, 0.5, "hive", "swarm", "No Response", 0.5, 0.3, 0.2],
        [called, 2, 1.0, 0.6, "girl", "b****", "", 0.6, 0.4, ""],
    ]
    names = ["Question", "Number_of_Unique_Responses", "Response_Entropy", "Highest_Response_Percent"]
    names += [f"{what}_{at}" for what in ("Answer", "Percent_of_Responses") for at in (1, 2, 3)]
    pd.DataFrame(table, columns=names).to_csv(folder / "output.tsv", sep="\t", index=False)


def devarda(folder: Path) -> None:
    """The sheets are workbooks, which nothing here writes: the real ones are read where they are."""
    rows = [
        {
            "word": word, "sentence": sentence, "context_length": at, "sent_id": text,
            "self_paced_reading_time": 250.5 + 9 * len(word), "RTfirstfix": 150.0, "RTfirstpass": 160.0,
            "RTrightbound": 170.0, "RTgopast": 180.0,
        }
        for text, sentence in enumerate(SENTENCES, start=1)
        for at, word in enumerate(sentence.split()[1:], start=1)
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv(folder / "all_measures.csv", index=False)


def meco(folder: Path, file: str) -> None:
    """Every word once per language model; the number after the second word is left out."""
    means = pd.DataFrame(times_of(SENTENCES, 5), columns=["reader", "trialid", "ianum", "ia", "ms"])
    means = means.groupby(["trialid", "ianum", "ia"], as_index=False)["ms"].mean()
    means["ianum"] += means["ianum"] > 2
    means = means.assign(gaze_rt=means["ms"], firstfix_rt=means["ms"] - 9, total_rt=means["ms"] + 50, freq=7.5)
    models = [means.assign(model=name) for name in ("mgpt_lc", "mgpt_sc")]
    pd.concat(models).to_csv(folder / file, index=False)


def nicenboim(folder: Path) -> None:
    frames = [
        ("Sie trinkt einen heißen", ["Kaffee.", "Kaffee", "Tee mit Milch"]),
        ("Er kauft einen großen", ["Hut", "", "hut."]),
    ]
    rows = [
        {"Beraterparticipant": 100_000 + who, "item": item, "condition": "Constraining_a", "sentence": sentence,
         "completion": said, "time": 900}
        for item, (sentence, answers) in enumerate(frames, start=1) for who, said in enumerate(answers)
    ]  # fmt: skip
    path = folder / "answers_annotated_before_noun_CORRECTED.tsv"
    pd.DataFrame(rows).to_csv(path, sep="\t", index=False, quoting=3)


def bianchi(folder: Path) -> None:
    """The first story has marks, accents and a word more than the table; the others are one sentence."""
    rows, stories = [], list(CORPORA["bianchi"].files)[1:]
    for at, story in enumerate(stories):
        text = "¿Qué pasó? Había — un niño muy solo." if at == 0 else "No hay nada."
        bare = ["que", "paso", "habia", "un", "nino", "solo"] if at == 0 else ["no", "hay", "nada"]
        (folder / story).write_text(text, encoding="utf-8")
        rows += [
            {"tId": at, "misWords": n, "originales": one, "pred": 0, "nPred": 3, "words": f"niño,{one},,{one}"}
            for n, one in enumerate(bare, start=1)
        ]
    pd.DataFrame(rows).to_csv(folder / "predictability.csv")


MADE = {each.__name__: each for each in (natural_stories, ucl, devarda, provo, onestop, peelle, nicenboim, bianchi)}


def write_all(root: Path) -> Path:
    """Every data set, each in its folder."""
    for name, make in MADE.items():
        (root / name).mkdir(parents=True)
        make(root / name)
    for name in (name for name in CORPORA if name.startswith("meco_")):
        (root / name).mkdir()
        meco(root / name, *CORPORA[name].files)
    return root
