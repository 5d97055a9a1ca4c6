"""What ``help`` says of a public function: what it takes and gives, and every setting, from the class of settings."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Collection
from dataclasses import is_dataclass
from typing import Any

from pydantic.fields import FieldInfo

from shannon_game.inference.settings import Settings, doc_sections, ordered_fields, setting_lines

_RAISES = """\
Raises
------
InputError
    For a wrong setting, and data that are missing or cannot be used; names the place, and what would be right.
"""
OF_FRAMES = _RAISES
OF_LOADER = f"""\
Returns
-------
xarray.Dataset
    A {{}} study. Its notes count what was left out, repaired or kept in spite of doubts.

{_RAISES}"""
OF_EXPERIMENT = f"""\
Parameters
----------
study : xarray.Dataset
    A {{}} study, as made by {{}}.

Returns
-------
ExperimentResult
    ``table`` has one row per estimate, ``tables`` further tables, ``figures`` the figures, ``warnings`` what to doubt;
    ``files["NAME"]`` is the path of a file that a run writes.

{_RAISES}"""
_OF_SETTINGS = """\
settings : {}, optional
    All settings as one object; or give them by name, a dotted one in a dictionary: ``a={{"b": 1}}`` for ``a.b``."""
# of our own documentation of settings, which holds no data
_NULL = re.compile(r"\bnull\b")
_ORDER = ("Parameters", "Returns", "Other Parameters", "Raises")


def complete(call: Any, settings_class: type[Settings] | None, sections: str, but: Collection[str] = ()) -> Any:
    """Give a public function a signature with every setting, and a docstring that says what each of them means."""
    given = [each for each in inspect.signature(call).parameters.values() if each.kind is not each.VAR_KEYWORD]
    own = [each.replace(default=None) if each.name == "settings" else each for each in given]
    names = {each.name for each in given} | set(but)
    parts = doc_sections(f".\n\n{sections.strip()}") | doc_sections(call.__doc__)
    about = parts.pop("")
    if settings_class is not None:
        call.settings_class = settings_class
        settings_class.__doc__ = settings_class.__doc__ or f"Settings of :func:`{call.__name__}`."
        if "settings" in names:
            before = parts.get("Parameters", "Parameters\n----------")
            parts["Parameters"] = f"{before}\n{_OF_SETTINGS.format(settings_class.__name__)}"
        parts["Other Parameters"] = "Other Parameters\n----------------\n" + "\n".join(
            f"{name} : {takes}{', default ' * bool(default)}{default}\n{_filled(_NULL.sub('None', meaning))}"
            for name, default, takes, meaning in setting_lines(settings_class, reader="python")
            if name.partition(".")[0] not in names
        )
        own += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_default(field))
            for name, field in ordered_fields(settings_class)
            if name not in names
        ]
    ordered = [parts.pop(name) for name in _ORDER if name in parts]
    call.__doc__ = "\n\n".join([about.strip(), *ordered, *parts.values()]) + "\n"
    call.__signature__ = inspect.Signature(own)
    return call


def _filled(text: str) -> str:
    return textwrap.indent(textwrap.fill(text, 96, break_long_words=False, break_on_hyphens=False), "    ")


def _default(field: FieldInfo) -> Any:
    if field.is_required():
        return inspect.Parameter.empty
    value = field.get_default(call_default_factory=True)
    return {} if isinstance(value, Settings) or is_dataclass(value) else value
