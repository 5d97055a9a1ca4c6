"""Does a recommended design keep its promise in other contexts and other worlds? ``design_promise.py RESULT.csv GAME``.

Plans with the defaults of ``+exp=design``, then simulates every recommended design 200 times on a study of another
seed, whose worlds are drawn anew. Writes a row a simulated study (docs/results/design_promise.csv is one such file),
and the designs as they were planned beside it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from shannon_game import design, designed_simulated
from shannon_game.experiments.planning.replicates import simulated_studies
from shannon_game.experiments.planning.settings import DesignPoint, DesignSettings, wanted_width
from shannon_game.experiments.planning.worlds import draw_worlds, study_contexts

N_FRESH = 200
STUDY = {"n_items": 400, "vocab_size": 1000, "design": {"n_draws": 1, "n_answers": 1, "n_comparisons": 1}}


def main(path: Path, **changes: object) -> pd.DataFrame:
    """Plan, simulate anew, and write both tables."""
    settings = DesignSettings(**changes)
    result = design(designed_simulated(seed=0, **STUDY), settings)
    result.table.to_csv(path.with_name(path.stem + "_designs.csv"), index=False)
    fresh = settings.changed(seed=settings.seed + 1000)
    worlds = draw_worlds(study_contexts(designed_simulated(seed=1000, **STUDY)), fresh)
    rows = []
    for row in result.table[result.table["recommended"]].to_dict("records"):
        point = DesignPoint(**{name: row[name] for name in DesignPoint.__dataclass_fields__})
        rng = np.random.default_rng(fresh.seed)
        studies = simulated_studies(point, int(row["n_people"]), worlds, fresh, N_FRESH, rng)
        wanted = wanted_width(point.game, fresh)
        rows += [
            {"game": point.game, "seed": fresh.seed, "study": number, "truth": one.truth, "value": one.value}
            | {"width": one.width(fresh.interval), "wanted_width": wanted}
            for number, one in enumerate(studies)
        ]
        pd.DataFrame(rows).round(5).to_csv(path, index=False)
    return pd.DataFrame(rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]), games=sys.argv[2])
