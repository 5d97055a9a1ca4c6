"""What stands in the package's own ``conf``: public functions behind names, read without Hydra, and their kinds."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from importlib.resources import files


@cache
def _shipped(group: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Name in our own ``conf/GROUP`` -> function and kinds, read without Hydra, as the help of Python does."""
    found = {}
    for file in sorted((files("shannon_game.conf") / group).iterdir(), key=lambda file: file.name):
        text = file.read_text(encoding="utf-8") if file.name.endswith(".yaml") else ""
        if target := re.search(r"_target_: \S*\.(\w+)$", text, flags=re.MULTILINE):
            kinds = re.search(r"^ *kind: (.*)$", text, flags=re.MULTILINE)
            found[file.name.removesuffix(".yaml")] = target[1], tuple(re.findall(r"\w+", kinds[1] if kinds else ""))
    return found


def kinds_of(group: str, function: str) -> list[str]:
    """Kinds of study that a public function takes, or gives."""
    return list(dict.fromkeys(kind for its, kinds in _shipped(group).values() if its == function for kind in kinds))


def makers(kinds: Collection[str]) -> list[str]:
    """Public functions that give a study of one of these kinds."""
    loaders = [function for function, its in _shipped("study").values() if set(its) & set(kinds)]
    frames = {"text_study": "texts"} | {f"{kind}_study": f"{kind}_table" for kind in kinds}
    return sorted({*loaders, *(name for name, table in frames.items() if table in loaders)})
