"""Files as other programs write them, read with settings alone: the answers of every context, counted by hand.

The words are made up, the layouts are those of the programs' own exports.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

from shannon_game import cloze_table
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes

BAKER, SAILOR = "The baker sold the", "The sailor raised the"
ANSWERS = {BAKER: {"bread": 2, "cake": 1}, SAILOR: {"sail": 1, "flag": 1}}
LONG = {"participant": "subject", "context": "sentence", "response": "response"}


@dataclass(frozen=True)
class Layout:
    """Files by name, settings, and the answers of every context ("" is a blank one)."""

    files: Mapping[str, str | bytes]
    settings: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[str, Mapping[str, int]] = field(default_factory=lambda: ANSWERS)
    path: str = ""
    participants: int | None = 3


def table(*rows: str, sep: str = ",", end: str = "\n", head: str = "") -> str:
    """Rows whose cells stand between bars, written with another separator."""
    return head + "".join(row.replace("|", sep) + end for row in rows)


def quoted(*rows: str, sep: str = ",", end: str = "\r\n") -> str:
    return "".join(sep.join('"' + cell.replace('"', '""') + '"' for cell in row.split("|")) + end for row in rows)


def form(**answers: str) -> str:
    return json.dumps(answers, separators=(",", ":"))


def jspsych(subject: str, sentence: str, **answers: str) -> dict[str, Any]:
    return {"trial_type": "survey-text", "subject": subject, "rt": 812, "response": answers, "sentence": sentence}


JSPSYCH = [
    {"trial_type": "html-keyboard-response", "subject": "p1", "rt": None, "response": " ", "stimulus": "<p>Hello</p>"},
    jspsych("p1", BAKER, Q0="bread"),
    jspsych("p1", SAILOR, Q0="sail"),
    {"trial_type": "survey-text", "subject": "p1", "rt": 900, "response": {"age": "23", "language": "en"}},
    jspsych("p2", BAKER, Q0="bread"),
    jspsych("p2", SAILOR, Q0="flag"),
    jspsych("p3", BAKER, Q0="cake"),
]
CLOZE = {"where": {"trial_type": "survey-text"}, "where_not": {"sentence": ""}}
CELLS = [
    "subject|sentence|response",
    f"p1|{BAKER}|{form(Q0='bread')}",
    f"p2|{BAKER}|{form(Q0='bread')}",
    f"p3|{BAKER}|{form(Q0='cake')}",
    f"p1|{SAILOR}|{form(Q0='sail')}",
    f"p2|{SAILOR}|{form(Q0='flag')}",
]
PLAIN = [
    "subject|phase|sentence|response",
    "p1|practice|A dog can|bark",
    f"p1|test|{BAKER}|bread",
    f"p2|test|{BAKER}|bread",
    f"p3|test|{BAKER}|cake",
    f"p1|test|{SAILOR}|sail",
    f"p2|test|{SAILOR}|flag",
]
FIRST_7 = ["Time results were received", "MD5 hash of participant's IP address", "Controller name", "Item number"]
FIRST_7 += ["Element number", "Type", "Group"]
PENN = ["PennElementType", "PennElementName", "Parameter", "Value", "EventTime"]


def named(*names: str, start: int = 1) -> str:
    return "".join(f"# {at}. {name}.\n" for at, name in enumerate(names, start))


def penn(participant: str, *answers: tuple[str, str]) -> str:
    text = (
        "#\n# Results on Mon, 05 Jan 2026 10:00:00 GMT\n# USER AGENT: Browser/1.0\n# Design number was random = 3\n#\n"
    )
    text += "# Columns below this comment are as follows:\n" + named(*FIRST_7, *PENN, "Comments")
    row = f"1700000001,{participant},PennController,1,0,cloze,NULL,"
    text += row + "PennController,0,_Trial_,Start,1700000001000,NULL\n"
    text += named("sentence", "Comments", start=13)
    for sentence, answer in answers:
        text += row + f"TextInput,box,Final,{answer},1700000002000,{sentence.replace(' ', '%20')},NULL\n"
    return text + named("Comments", start=13) + row + "PennController,1,_Trial_,End,1700000003000,NULL\n"


def group(line: int, *names: str) -> str:
    """The comments of one of several lines in turn."""
    return f"# Line {line}:\n" + named(*FIRST_7, *names).replace("# ", "#     Col. ").replace(". ", ": ").replace(
        "Col: ", "Col. "
    )


def ibex(text: str) -> str:
    return text.replace("HEAD", "1700000001,aaaa,Form,3,0,cloze,NULL")


QUALTRICS = [
    "StartDate|Status|Finished|ResponseId|c1|c2",
    f"Start Date|Response Type|Finished|Response ID|{BAKER}|{SAILOR}",
    *[
        '{"ImportId":"startDate"}|{"ImportId":"status"}|{"ImportId":"finished"}|{"ImportId":"_recordId"}|{"ImportId":"QID1_TEXT"}|{"ImportId":"QID2_TEXT"}'
    ],
    "2026-01-05|IP Address|True|R_1|bread|sail",
    "2026-01-05|IP Address|True|R_2|bread|flag",
    "2026-01-05|IP Address|True|R_3|cake|",
]
BY_ID = {"c1": ANSWERS[BAKER], "c2": ANSWERS[SAILOR]}
GORILLA = [
    "Event Index|UTC Date|Participant Private ID|Spreadsheet Row|Zone Type|Reaction Time|Response|sentence",
    "1|05/01/2026|101|1|continue_button|512.4||",
    f"2|05/01/2026|101|2|response_text_entry|1812.4|bread|{BAKER}",
    f"3|05/01/2026|101|3|response_text_entry|1712.4|sail|{SAILOR}",
    "END OF FILE|||||||",
    f"1|05/01/2026|102|2|response_text_entry|1812.4|bread|{BAKER}",
    f"2|05/01/2026|102|3|response_text_entry|1712.4|flag|{SAILOR}",
    f"1|05/01/2026|103|2|response_text_entry|1812.4|cake|{BAKER}",
    "END OF FILE|||||||",
]
SOSCI = [
    "CASE|SERIAL|REF|QUESTNNR|MODE|STARTED|A101_01|A102_01",
    f"Interview-Nummer (fortlaufend)|Seriennummer|Referenz|Fragebogen|Modus|Beginn|{BAKER}|{SAILOR}",
    "41|||base|interview|2026-01-05 10:00:00|bread|sail",
    "42|||base|interview|2026-01-05 10:01:00|bread|flag",
    "45|||base|interview|2026-01-05 10:02:00|cake|",
]
WIDE = ["1|x|bread|sail", "2|x|bread|flag", "3|x|cake|"]
COUNTS = [f"{BAKER}|bread|2", f"{BAKER}|cake|1", f"{SAILOR}|sail|1", f"{SAILOR}|flag|1"]
SHARES = [f"{BAKER}|bread|66,7", f"{BAKER}|cake|33,3", f"{SAILOR}|sail|50,0", f"{SAILOR}|flag|50,0"]
MTURK = [
    "HITId|AssignmentStatus|WorkerId|Input.sentence|Answer.taskAnswers",
    *(
        f"H|Approved|{who}|{sentence}|" + json.dumps([{"word": word}])
        for who, sentence, word in (
            ("A1", BAKER, "bread"), ("A2", BAKER, "bread"), ("A3", BAKER, "cake"), ("A1", SAILOR, "sail"),
            ("A2", SAILOR, "flag"),
        )
    ),
]  # fmt: skip


def psychopy(*rows: str) -> str:
    head = "sentence,trials.thisN,key_resp.keys,box.text,participant_age,"
    return "\ufeff" + "\n".join([head, ",,space,,31,", *(f"{row},31," for row in rows)]) + "\n"


PSYCHOPY = {
    "101_cloze_2026-01-05_10h00.csv": psychopy(f'{BAKER},0,,"bread\n"', f"{SAILOR},1,,sail"),
    "102_cloze_2026-01-05_11h00.csv": psychopy(f"{BAKER},0,,bread", f"{SAILOR},1,,flag"),
    "103_cloze_2026-01-05_12h00.csv": psychopy(f"{BAKER},0,,cake"),
    "104_cloze_2026-01-05_13h00.csv": "",
    "101_cloze_2026-01-05_10h00.log": "0.1 EXP started",
    "101_cloze_2026-01-05_10h00.psydat": b"\x80\x04",
}
PSYCHOPY_SETTINGS = {
    "columns": {"participant": "participant", "context": "sentence", "response": "box.text"},
    "where_not": {"sentence": ""},
}

LAYOUTS = {
    "jsPsych 7, CSV": Layout({"a.csv": quoted(*CELLS)}, {"columns": LONG}),
    "jsPsych 7, a blank answer": Layout(
        {"a.csv": quoted(*CELLS, f"p3|{SAILOR}|{form(Q0='')}")},
        {"columns": LONG},
        {**ANSWERS, SAILOR: {"sail": 1, "flag": 1, "": 1}},
    ),
    "jsPsych 7, two questions on a page": Layout(
        {"a.csv": quoted(*(row.replace('"Q0":', '"Q0":"yes","Q1":') for row in CELLS))},
        {"columns": LONG | {"response": "response.Q1"}},
    ),
    "jsPsych 7, JSON": Layout({"a.json": json.dumps(JSPSYCH)}, {"columns": LONG, **CLOZE}),
    "jsPsych 7, indented JSON": Layout({"a.json": json.dumps(JSPSYCH, indent=2)}, {"columns": LONG, **CLOZE}),
    "jsPsych, plug-in cloze": Layout(
        {"a.csv": quoted(*(row.replace('{"Q0":', "[").replace("}", "]") for row in CELLS))}, {"columns": LONG}
    ),
    "JATOS, a line per component": Layout(
        {"results.txt": f"{json.dumps(JSPSYCH[:4])}\n{json.dumps(JSPSYCH[4:])}\n"}, {"columns": LONG, **CLOZE}
    ),
    "OSF DataPipe, a JSON file per participant": Layout(
        {f"{name}.json": json.dumps(part) for name, part in (("a", JSPSYCH[:4]), ("b", JSPSYCH[4:]))},
        {"columns": LONG, **CLOZE},
        path=".",
    ),
    "objects as pandas writes them": Layout(
        {"a.csv": quoted(*(row.replace('"', "'") for row in CELLS))}, {"columns": LONG}
    ),
    "lab.js": Layout(
        {"a.csv": table("sender|meta|ended_on|phase|sentence|response|code",
            'Start|"{""labjs_version"":""20.0"",""location"":""x""}"|||||p1',
            *(f"Cloze||form submission|{row.split('|', 1)[1]}|{row.split('|')[0]}" for row in PLAIN[1:]))},
        {"columns": {"participant": "code", "context": "sentence", "response": "response"},
         "where": {"sender": "Cloze", "phase": "test"}},
    ),
    "PsychoPy, a folder": Layout(PSYCHOPY, PSYCHOPY_SETTINGS, path="."),
    "Pavlovia, a pattern": Layout(
        {"data/" + name: text for name, text in PSYCHOPY.items()}, PSYCHOPY_SETTINGS, path="data/*.csv"
    ),
    "Gorilla": Layout(
        {"data_exp_1-v2_task-ab12.csv": "\ufeff" + table(*GORILLA)},
        {"columns": {"participant": "Participant Private ID", "context": "sentence", "response": "Response"},
         "where": {"Zone Type": "response_text_entry"}},
    ),
    "PCIbex, PennController": Layout(
        {"results.csv": penn("a1", (BAKER, "bread"), (SAILOR, "sail"))
            + penn("a2", (BAKER, "bread"), (SAILOR, "flag")) + penn("a3", (BAKER, "cake%2C%20pie"))},
        {"columns": {"participant": FIRST_7[1], "context": "sentence", "response": "Value"},
         "where": {"PennElementType": "TextInput", "Parameter": "Final"}},
        {**ANSWERS, BAKER: {"bread": 2, "cake, pie": 1}},
    ),
    "Ibex, a comment before each row": Layout(
        {"results": ibex("#\n# ...First 7... -- [8] Field name. -- [9] Field value.\nHEAD,c1,bread\n"
            "# ...First 7... -- [8] Field name. -- [9] Field value.\nHEAD,c2,sail\n")},
        {"columns": {"context_id": "Field name", "response": "Field value"}},
        {"c1": {"bread": 1}, "c2": {"sail": 1}}, participants=None,
    ),
    "Ibex, lines in groups": Layout(
        {"results": ibex("# Results\n# Columns below this comment are as follows:\n"
            "# The lines below this comment are in groups of 2.\n"
            + group(1, "id", "said") + group(2, "rt") + "HEAD,c1,bread\nHEAD,812\nHEAD,c2,sail\nHEAD,912\n")},
        {"columns": {"context_id": "id", "response": "said"}, "where_not": {"id": ""}},
        {"c1": {"bread": 1}, "c2": {"sail": 1}}, participants=None,
    ),
    "Qualtrics, UTF-16 tabs": Layout(
        {"export.tsv": quoted(*QUALTRICS, sep="\t").encode("utf-16")}, {"wide": {"items": "c*"}}
    ),
    "SurveyMonkey": Layout(
        {"Sheet_1.csv": table(f"Respondent ID|Collector ID|Start Date|{BAKER}|{SAILOR}",
            "|||Open-Ended Response|Open-Ended Response",
            *(f"11{row[0]}|9|01/05/2026|{row[4:]}" for row in WIDE))},
        {"wide": {"items": "The *"}},
    ),
    "SoSci Survey": Layout(
        {"data.csv": quoted(*SOSCI, sep="\t").encode("utf-16")}, {"wide": {"items": "A*_01"}},
    ),
    "LimeSurvey": Layout(
        {"results-survey.csv": "\ufeff" + quoted("id|submitdate|c1|c2", *WIDE, sep=";")},
        {"wide": {"items": "c*"}, "columns": {"participant": "id"}}, BY_ID,
    ),
    "REDCap": Layout(
        {"Cloze_DATA.csv": table("record_id|identifier|c1|c2|cloze_complete", *(f"{row}|2" for row in WIDE))},
        {"wide": {"items": ["c1", "c2"]}, "columns": {"participant": "record_id"}}, BY_ID,
    ),
    "formr": Layout(
        {"cloze.csv": quoted("session|ended|c1|c2", *WIDE, sep=";")},
        {"wide": {"items": "c*"}, "columns": {"participant": "session"}}, BY_ID,
    ),
    "Google Forms": Layout(
        {"Form.csv": quoted(f"Code|Timestamp|{BAKER}|{SAILOR}", *WIDE)},
        {"wide": {"items": "The *"}, "columns": {"participant": "Code"}},
    ),
    "OpenSesame": Layout(
        {"subject-1.csv": quoted(PLAIN[0] + "|practice", "p1|NA|NA|NA|yes", PLAIN[1] + "|yes",
            *(row + "|no" for row in PLAIN[2:]))},
        {"columns": LONG, "where_not": {"practice": "yes"}, "empty": ["NA"]},
    ),
    "E-Prime, merged": Layout(
        {"all.txt": (r"C:\data\all.emrg2" + "\r\n" + table(*PLAIN, sep="\t", end="\r\n")).encode("utf-16")},
        {"columns": LONG, "skip": 1, "where": {"phase": ["test"]}},
    ),
    "Mechanical Turk": Layout(
        {"Batch_1.csv": quoted(*MTURK)},
        {"columns": {"participant": "WorkerId", "context": "Input.sentence", "response": "Answer.taskAnswers"}},
    ),
    "norms, counts": Layout(
        {"norms.csv": table("Sentence|Completion|Number", *COUNTS)},
        {"columns": {"context": "Sentence", "response": "Completion", "count": "Number"}}, participants=None,
    ),
    "norms, a row per sentence": Layout(
        {"norms.csv": table("Sentence|Resp1|N1|Resp2|N2", f"{BAKER}|bread|2|cake|1", f"{SAILOR}|sail|1|flag|1")},
        {"columns": {"context": "Sentence"}, "wide": {"answers": "Resp*", "counts": "N*"}}, participants=None,
    ),
    "norms, percentages of a spreadsheet": Layout(
        {"norms.csv": table("Satz|Antwort|Häufigkeit", *SHARES, sep=";").encode("cp1252")},
        {"columns": {"context": "Satz", "response": "Antwort", "proportion": "Häufigkeit"},
         "percent": True, "n_answers": 6},
        {BAKER: {"bread": 4, "cake": 2}, SAILOR: {"sail": 3, "flag": 3}}, participants=None,
    ),
}  # fmt: skip


def written(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def answers_of(study: xr.Dataset) -> dict[str, dict[str, int]]:
    names = study["context"].to_numpy()
    if not any(names.tolist()):
        names = study["item_id"].to_numpy()
    found: dict[str, Counter[str]] = {name: Counter() for name in names.tolist()}
    words = study["word_text"].to_numpy()[study["response_word"].to_numpy()]
    for item, word, count in zip(study["response_item"].values, words, study["response_count"].values, strict=True):
        found[names[item]][word.strip()] += int(count)
    return {name: dict(counts) for name, counts in found.items()}


@pytest.mark.parametrize("name", LAYOUTS)
def test_an_export_is_read_with_settings_alone(name: str, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    written(tmp_path, layout.files)
    study = cloze_table(path=tmp_path / (layout.path or next(iter(layout.files))), **layout.settings)
    assert answers_of(study) == layout.answers
    who = set(study["participant"].to_numpy().tolist()) if "participant" in study else None
    assert (None if who is None else len(who)) == layout.participants


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    written(tmp_path, PSYCHOPY)
    study = cloze_table(path=tmp_path, **PSYCHOPY_SETTINGS)
    found = {note["text"].partition(":")[0]: note["count"] for note in notes(study)}
    assert found["rows left out by study.where_not"] == 3
    assert found["empty files, left out"] == 1
    assert found["files and folders in the folder that were not read"] == 2
    assert set(study["participant"].to_numpy().tolist()) == {name[:26] for name in list(PSYCHOPY)[:3]}


REFUSED = {
    "several keys in a cell": (
        {"a.csv": quoted(*(row.replace('"Q0":', '"Q0":"yes","Q1":') for row in CELLS))},
        {"columns": LONG}, "response.Q1",
    ),
    "a cell cut off": ({"a.csv": quoted(*CELLS, f'p3|{SAILOR}|{{"Q0":"sa')}, {"columns": LONG}, "line 7"),
    "a key twice in a cell": (
        {"a.csv": quoted(*CELLS, f'p3|{SAILOR}|{{"Q0":"sail","Q0":"flag"}}')}, {"columns": LONG}, "line 7",
    ),
    "a value that no row has": (
        {"a.csv": table(*PLAIN)}, {"columns": LONG, "where": {"phase": "tset"}}, "'practice', 'test'",
    ),
    "a column that is not there": (
        {"a.csv": table(*PLAIN)}, {"columns": LONG, "where_not": {"fase": "practice"}}, "did you mean 'phase'",
    ),
    "a line before the header": ({"a.txt": "all.emrg2\n" + table(*PLAIN, sep="\t")}, {"columns": LONG}, "skip=1"),
    "a PCIbex comma": ({"a.csv": penn("a1", (BAKER, "cake, pie"))}, {"columns": LONG}, "%2C"),
    "an archive": ({"a.zip": b"PK\x03\x04"}, {"columns": LONG}, "unpack it"),
    "an SPSS file": ({"a.sav": b"$FL2\0\0"}, {"columns": LONG}, "export it there as CSV"),
    "a log of E-Prime": (
        {"a.txt": "*** Header Start ***\r\nLevelName: Session\r\n".encode("utf-16")}, {"columns": LONG}, "is missing",
    ),
    "a list that is no table": ({"a.json": '["bread", "cake"]'}, {"columns": LONG}, "an object"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_understood_is_refused_with_its_cure(name: str, tmp_path: Path) -> None:
    files, settings, cure = REFUSED[name]
    written(tmp_path, files)
    with pytest.raises(InputError) as error:
        cloze_table(path=tmp_path / next(iter(files)), **settings)
    assert cure in str(error.value)
    assert "\n" not in str(error.value)


def test_files_of_two_kinds_beside_each_other_are_not_one_table(tmp_path: Path) -> None:
    written(tmp_path, {"a.csv": table(*PLAIN), "a.json": json.dumps(JSPSYCH)})
    with pytest.raises(InputError, match=r"\*\.csv takes those of one kind"):
        cloze_table(path=tmp_path, columns=LONG)
    study = cloze_table(path=tmp_path / "*.csv", columns=LONG, where={"phase": "test"})
    assert answers_of(study) == ANSWERS


@pytest.mark.parametrize("answer", ["[noise]", "{", "[1]", "null", "{x}", "NULL", "100%25"])
def test_an_answer_that_looks_like_json_is_an_answer(answer: str, tmp_path: Path) -> None:
    written(tmp_path, {"a.csv": quoted(*PLAIN[:1], *PLAIN[2:], f"p3|test|{SAILOR}|{answer}")})
    study = cloze_table(path=tmp_path / "a.csv", columns=LONG)
    assert answers_of(study)[SAILOR] == {"sail": 1, "flag": 1, answer: 1}
