"""A small guess study, to look at and to break."""

from __future__ import annotations

import numpy as np
import xarray as xr


def guess_study() -> xr.Dataset:
    """Two documents, four items, six guesses by Ann, Bo and Cy; Ann guesses twice at item 10."""
    return xr.Dataset(
        {
            "text": ("document", np.array(["The cat sat", "A dog"], dtype=object)),
            "item_document": ("item", np.array(["a", "a", "b", "a"], dtype=object)),
            "item_position": ("item", np.array([1, 2, 1, 0])),
            "word_token": ("item", np.array([True, True, True, False])),
            "target_token": ("item", np.array([" cat", " sat", " dog", "The"], dtype=object)),
            "target_start": ("item", np.array([3, 7, 1, 0])),
            "participant": ("response", np.array(["Ann", "Bo", "Ann", "Ann", "Cy", "Bo"], dtype=object)),
            "response_item": ("response", np.array([10, 10, 11, 10, 12, 13])),
            "correct": ("response", np.array([False, True, False, True, True, False])),
            "n_before": ("response", np.array([0, 0, 1, 4, 0, 1])),
            "guess": ("response", np.array([" dog", " cat", " ran", " cat", " dog", "A"], dtype=object)),
            "stored_model": ("stored", np.array(["gpt"], dtype=object)),
            "stored_accuracy": ("stored", np.array([0.4])),
            "stored_n": ("stored", np.array([1000])),
            "stored_tokens": ("stored", np.array(["visible"], dtype=object)),
            "stored_source": ("stored", np.array(["perfs.json"], dtype=object)),
        },
        coords={"document": np.array(["a", "b"], dtype=object), "item": np.array([10, 11, 12, 13])},
        attrs={"name": "small"},
    )
