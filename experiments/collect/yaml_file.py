"""YAML that people write: a key stands once, and what is no YAML is said."""

from __future__ import annotations

from typing import Any

import yaml

from shannon_game.estimators.errors import InputError

__all__ = ["parse_yaml"]


def parse_yaml(text: str, source: object, field: str | None = None) -> Any:
    r"""Parse YAML in which every mapping gives a key once: of two values YAML takes the last and says nothing.

    Examples
    --------
    >>> parse_yaml("age: {kind: number}", "before.yaml")
    {'age': {'kind': 'number'}}
    >>> parse_yaml("name: age\nname: sex\n", "before.yaml")
    Traceback (most recent call last):
    shannon_game.estimators.errors.InputError: before.yaml, name: stands twice, again in line 2
    """
    try:
        _refuse_doubled_keys(yaml.compose(text, yaml.SafeLoader), source, set())
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"is no YAML: {' '.join(str(error).split())}", source=source, field=field) from error
    except RecursionError:
        raise InputError("is nested too deeply", source=source, field=field) from None


def _refuse_doubled_keys(node: Any, source: object, seen: set[int]) -> None:
    # an alias may stand for what it is in
    if id(node) in seen or not isinstance(node, yaml.CollectionNode):
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _refuse_doubled_keys(value, source, seen)
        return
    keys = set()
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode):
            if key.value in keys:
                problem = f"stands twice, again in line {key.start_mark.line + 1}"
                raise InputError(problem, source=source, field=key.value)
            keys.add(key.value)
        _refuse_doubled_keys(value, source, seen)
