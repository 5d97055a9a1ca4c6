"""Write a comparison study in the public layout of the next-token game, for other tools and for ``study=lm_game``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from shannon_game.estimators.comparison import validate_comparison_study
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.comparison.lm_game_parse import RESPONSE_FILE, question_file
from shannon_game.inference.disk import write_whole
from shannon_game.inference.manifest import replaced


def write_lm_game(study: xr.Dataset, folder: Path | str) -> Path:
    """Write ``multi_comparisons/doc{item}.json`` for every item, and the answers where there are any.

    ``generation_probs`` are the generator's probabilities of the candidates. Reports become the percentages of
    ``results_raw/res_loss_anonym.json``, with ``row_id`` where the study has it. The layout has no place for
    ``item_set``, ``in_reference``, ``selected`` (settings of the loader say them again), ``automatic`` (which follows
    from the strings), and a simulation's truth.
    """
    validate_comparison_study(study)
    folder = Path(folder)
    names = [str(name) for name in study["model"].values]
    for name in names:
        if name != name.strip("/"):
            raise InputError(f"is {name!r}; the layout drops slashes at the ends of a name", field="model")
    items = study["item"].values.tolist()
    if min(items) < 0:
        raise InputError(f"is {min(items)}; the layout numbers its questions from 0", field="item")
    index = names.index(study.attrs["generator"])
    target, candidate = study["target_logprob"].values, study["candidate_logprob"].values
    columns = [study[name].values.tolist() for name in ("context", "target_token", "candidate_token")]
    with replaced(folder, "public layout") as staging:
        for position, (item, context, token, candidates) in enumerate(zip(items, *columns, strict=True)):
            question = {
                "id": item,
                "input_str": context,
                "correct_token_str": token,
                "generated_token_strs": candidates,
                "generator_names": names,
                "generator_index": index,
                "correct_logprobs": target[:, position].tolist(),
                "generated_logprobss": candidate[:, position].tolist(),
                "generation_probs": np.exp(candidate[index, position]).tolist(),
            }
            _write(staging / question_file(item), question)
        if study.sizes["response"]:
            _write(staging / RESPONSE_FILE, _rows(study))
    return folder


def _rows(study: xr.Dataset) -> list[list[Any]]:
    n_rows = study.sizes["response"]
    row_id = study["row_id"].values.tolist() if "row_id" in study else list(range(n_rows))
    columns = (
        row_id,
        study["participant"].values.tolist(),
        [_percent(report) for report in study["report"].values.tolist()],
        study["response_item"].values.tolist(),
        study["response_candidate"].values.tolist(),
    )
    return [list(row) for row in zip(*columns, strict=True)]


def _percent(report: float) -> float:
    """Find the percentage that gives the report again when divided by 100: exactly where there is one."""
    percent = 100 * report
    short = round(percent, 10)
    for candidate in (short, percent, np.nextafter(percent, 0), np.nextafter(percent, 100)):
        if float(candidate) / 100 == report:
            return float(candidate)
    return percent


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(content, allow_nan=False), private=True)
