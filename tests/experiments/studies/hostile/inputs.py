"""Tiny valid inputs of every loader, to attack one file of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from shannon_game import (
    cloze_file,
    cloze_simulated,
    cloze_table,
    comparison_file,
    lm_game,
    lm_game_documents,
    lm_game_top1,
    provo,
    rank_perplexity,
    texts,
)
from shannon_game.experiments.studies.cloze.file import save_cloze_study
from shannon_game.experiments.studies.comparison.file import save_comparison_study
from tests.estimators.comparison.comparison_studies import small_study
from tests.experiments.studies.cloze import tiny_provo
from tests.experiments.studies.comparison import tiny_lm_game
from tests.experiments.studies.guesses import tiny_top1
from tests.experiments.studies.rankings import tiny_ranks

QUESTION, RESPONSES = "multi_comparisons/doc101.json", tiny_lm_game.RESPONSES
TOP1, DOCUMENT, ACCURACIES = tiny_top1.RESPONSES, "docs/doc7.json", "results_raw/model_perfs.json"
HUMAN, GPT2 = "TVD/GPT2_Temp/Generations/Paragraphs_temp-1-2.json", "TVD/GPT2/Generations/Paragraphs-1-1.json"
BLOOM, CHATGPT = "TVD/BLOOM/Generations/processed_bloom.json", "TVD/ChatGPT/Generations/processed_chatgpt.json"
RESULTS = "TVD/Oracle/uncertainty_results/TVD_oracle.json"
WORKBOOKS = "n = 30 reftext1.zip"

CLOZE_TABLE = "context,response,count\nThe cat,sat,3\nThe cat,ran,1\nA dog,ran,2\n"
LINES = '{"text": "Call me Ishmael.", "id": "a"}\n{"text": "Some years ago.", "id": "b"}\n'


@dataclass(frozen=True)
class Input:
    """A loader, what writes a valid input into a folder, what loads it, and its files that are attacked."""

    write: Callable[[Path], object]
    load: Callable[[Path], xr.Dataset]
    files: tuple[str, ...]


def _text(**contents: str | bytes) -> Callable[[Path], None]:
    """Write files; an underscore stands for the dot in a name."""

    def write(root: Path) -> None:
        for name, text in contents.items():
            (root / name.replace("_", ".")).write_bytes(text if isinstance(text, bytes) else text.encode())

    return write


def _game(root: Path, data: Mapping[str, Any], names: tuple[str, ...]) -> None:
    tiny_lm_game.write_folder(root, {name: data[name] for name in names})


def _lm_game(root: Path) -> xr.Dataset:
    return lm_game(root=root, sets={"all": [100, 101]}, reference=[100, 101], participants="all")


def _game_files(root: Path) -> None:
    _game(root, tiny_lm_game.contents(), (tiny_lm_game.question_name(100), QUESTION, RESPONSES))


def _zipped(root: Path) -> None:
    data = tiny_lm_game.contents()
    tiny_lm_game.write_archive(
        root / "a.zip", {name: data[name] for name in (tiny_lm_game.question_name(100), QUESTION, RESPONSES)}
    )


def _ranks(root: Path) -> None:
    name = "Saved Data reftext gpt-4 64.xlsx"
    empty: dict[str, dict[str, Any]] = {archive: {} for archive in ("n = 30 reftext1.zip", "n = 30 reftext2.zip")}
    tiny_ranks.write(root, empty | {WORKBOOKS: {name: tiny_ranks.sheet(1)}})


def _provo(root: Path) -> None:
    tiny_provo.write(root, n_words=2)


def _parquet(root: Path) -> None:
    pd.read_csv(StringIO(CLOZE_TABLE)).to_parquet(root / "c.parquet")


INPUTS: Mapping[str, Input] = {
    "lm_game": Input(_game_files, _lm_game, (QUESTION, RESPONSES)),
    "lm_game zip": Input(_zipped, lambda root: _lm_game(root / "a.zip"), ("a.zip",)),
    "lm_game_top1": Input(tiny_top1.write_folder, lambda root: lm_game_top1(root=root), (TOP1, DOCUMENT, ACCURACIES)),
    "provo": Input(_provo, lambda root: provo(root=root), (HUMAN, GPT2, BLOOM, CHATGPT, RESULTS)),
    "rank_perplexity": Input(_ranks, lambda root: rank_perplexity(root=root, part="main"), (WORKBOOKS,)),
    "texts": Input(_text(a_txt="Call me Ishmael.\nSome years ago.\n"), lambda root: texts(path=root), ("a.txt",)),
    "texts lines": Input(_text(a_jsonl=LINES), lambda root: texts(path=root / "a.jsonl", id_field="id"), ("a.jsonl",)),
    "lm_game_documents": Input(
        lambda root: tiny_top1.write_folder(root, {DOCUMENT: tiny_top1.DOCUMENTS[7]}),
        lambda root: lm_game_documents(root=root),
        (DOCUMENT,),
    ),
    "comparison_file": Input(
        lambda root: save_comparison_study(small_study(), root / "s.nc"),
        lambda root: comparison_file(path=root / "s.nc"),
        ("s.nc",),
    ),
    "cloze_file": Input(
        lambda root: save_cloze_study(cloze_simulated(n_items=4, families=["mixture"]), root / "s.nc"),
        lambda root: cloze_file(path=root / "s.nc"),
        ("s.nc",),
    ),
    # one of the readers of tables; fuzz.py changes a table of each
    "cloze_table": Input(_text(c_csv=CLOZE_TABLE), lambda root: cloze_table(path=root / "c.csv"), ("c.csv",)),
    "cloze parquet": Input(_parquet, lambda root: cloze_table(path=root / "c.parquet"), ("c.parquet",)),
}
