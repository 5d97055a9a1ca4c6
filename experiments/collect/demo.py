"""The demonstration: beginnings of nine English texts that belong to everybody, with drawn candidates.

The texts are in ``data/texts``; ``data/demo.nc`` was made of them by ``+exp=build_study`` with SmolLM2-135M and the
same model without its last block; ``data/tokens.json`` has the texts in that model's tokens.
``data/README.md`` says from which books they are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.studies.comparison.file import comparison_file
from shannon_game.inference.settings import Settings

if TYPE_CHECKING:
    import xarray as xr

DEMO = "collect_demo"
"""Name of the study."""

_DATA = Path(__file__).parent / "data"


class CollectDemoSettings(Settings):
    """Settings of the demonstration: none."""


@loader(CollectDemoSettings)
def collect_demo(settings: CollectDemoSettings) -> xr.Dataset:
    """Load the study that is served where no other is named.

    Returns
    -------
    xarray.Dataset
        A comparison study with the whole texts, ``document_text``, and their tokens, ``token``, beside it.

    Examples
    --------
    >>> study = collect_demo()
    >>> study.sizes["item"], study.sizes["document_name"]
    (120, 9)
    """
    del settings
    study = comparison_file(path=_DATA / "demo.nc")
    names = sorted(path.name for path in (_DATA / "texts").glob("*.txt"))
    texts = [(_DATA / "texts" / name).read_text(encoding="utf-8") for name in names]
    tokens = json.loads((_DATA / "tokens.json").read_text(encoding="utf-8"))
    of_document = np.repeat(np.arange(len(names)), [len(tokens[name]) for name in names])
    return (
        study.assign(
            document_text=("document_name", np.array(texts, dtype=object)),
            token=("position", np.array([token for name in names for token in tokens[name]], dtype=object)),
            token_document=("position", of_document),
        )
        .assign_coords(document_name=np.array(names, dtype=object))
        .assign_attrs(name=DEMO)
    )
