"""YAML that people write: every mistake in it is one line, and none makes the memory run out."""

from __future__ import annotations

from typing import Any

import yaml

from shannon_game.estimators.errors import InputError

_MOST_VALUES = 10**6


def parse_yaml(text: str, source: object, field: str | None = None) -> Any:
    """Parse YAML in which every mapping gives a key once: of two values YAML takes the last and says nothing."""

    class Once(yaml.SafeLoader):  # type: ignore[misc]
        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            keys = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value in keys:
                    problem = f"stands twice, again in line {key.start_mark.line + 1}"
                    raise InputError(problem, source=source, field=key.value)
                keys.add(str(key.value))
            super().flatten_mapping(node)

    try:
        if "*" in text and _size(yaml.compose(text, Once), {}) > _MOST_VALUES:
            raise InputError(f"has more than {_MOST_VALUES:,} values once its *names are written out", source=source)
        return yaml.load(text, Once)
    except yaml.YAMLError as error:
        raise InputError(f"is no YAML: {' '.join(str(error).split())}", source=source, field=field) from error
    except RecursionError:
        raise InputError("is nested too deeply", source=source, field=field) from None


def _size(node: Any, known: dict[int, int]) -> int:
    """Values in a node with all that its aliases stand for; a node inside itself has no end."""
    if isinstance(node, yaml.CollectionNode) and id(node) not in known:
        known[id(node)] = _MOST_VALUES + 1
        pairs = isinstance(node, yaml.MappingNode)
        inner = [each for pair in node.value for each in pair] if pairs else node.value
        known[id(node)] = 1 + sum(_size(each, known) for each in inner)
    return known.get(id(node), 1)
