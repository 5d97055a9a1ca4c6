"""The key of an endpoint: where it is read, and in which shapes a text could give it away."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote, urlsplit

from pydantic import BeforeValidator

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set

if TYPE_CHECKING:
    from shannon_game.inference.api.settings import ApiSettings

# a shorter one, such as EMPTY for a server of one's own, is a word that texts have too
_SHORTEST = 8


def is_variable(name: object) -> bool:
    """Tell the name of an environment variable, as they are written for keys; a key itself hardly ever is one."""
    return isinstance(name, str) and re.fullmatch(r"[A-Z_][A-Z0-9_]*", name) is not None


def may_hold_key(address: str) -> bool:
    """Tell an address with a name, password, query or fragment, in which a key may stand."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return True
    return "@" in parts.netloc or bool(parts.query or parts.fragment)


def _variable(value: Any) -> Any:
    if value in ("", None) or is_variable(value):
        return value
    # what stands there may be the key: it is not repeated
    raise InputError(
        "should be the NAME of an environment variable, in capitals, digits and _, such as OPENAI_API_KEY; the key "
        "itself goes into that variable. What was given is not shown. If it is a key, replace the key"
    )


KeyVariable = Annotated[str, BeforeValidator(_variable)]
"""Name of the environment variable with a key; "" for none."""


def key_of(settings: ApiSettings) -> str:
    """Read the key from the environment; "" where the endpoint needs none."""
    variable = settings.key_variable
    if not variable:
        return ""
    key = os.environ.get(variable, "").strip()
    # a key of capitals and digits, given for the name of its variable, has no _ or is longer
    name = variable if "_" in variable and len(variable) <= 40 else "that key_env names"
    problem = ""
    if not key:
        problem = "is not set; put the endpoint's key there, or set key_env='' where none is needed"
    elif not key.isascii() or not key.isprintable() or " " in key:
        problem = "holds spaces, line breaks or letters that no key has"
    if problem:
        raise InputError(f"the environment variable {name} {problem}", source=Set("model", ["api"]), field="key_env")
    return key


def holds_key(text: str, key: str) -> bool:
    """Find a key in a text: plain, in base64, hexadecimal, URL-encoded, in other case, or in pieces."""
    shapes = {_letters(shape) for shape in _shapes(key.encode())}
    # names and numbers stand between the texts of an object
    seen = (text, unquote(text), re.sub(r'":[^"]*"', "", text), re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _unescaped, text))
    return len(_letters(key)) >= _SHORTEST and any(shape in _letters(each) for each in seen for shape in shapes)


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def _unescaped(found: re.Match[str]) -> str:
    escaped = found[1]
    return chr(int(escaped[1:], 16)) if len(escaped) > 1 else " "


def _shapes(key: bytes) -> Iterator[str]:
    yield key.decode()
    yield key.hex()
    # the key may stand anywhere in what was encoded: in each of three places, the characters that are its own
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + key).decode()
        yield encoded[(before * 8 + 5) // 6 : (before + len(key)) * 8 // 6]
