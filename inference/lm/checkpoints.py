"""Reading a model in the Hub's layout: from a folder, or from the Hub and its local cache."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimators.errors import InputError
from inference.lm.settings import ModelSettings

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["from_pretrained", "hub_commit", "model_folder"]

log = logging.getLogger(__name__)


def hub_commit(settings: ModelSettings) -> str:
    """Return the commit that the revision of a model with ``source=hub`` stands for.

    Parameters
    ----------
    settings : ModelSettings

    Returns
    -------
    str
        Forty hexadecimal digits.

    Raises
    ------
    InputError
        If the repository is neither in the local cache nor to be had, or the path is a folder.
    """
    from transformers.utils.hub import cached_file  # noqa: PLC0415

    source = f"model {settings.name!r}"
    try:
        file = cached_file(str(settings.path), "config.json", revision=settings.revision)
    except OSError as error:
        raise InputError(_why_not_found(settings, str(settings.path), error), source=source) from error
    # the cache keeps a repository's files by commit
    commit = Path(str(file)).parent.name
    if not re.fullmatch("[0-9a-f]{40}", commit):
        raise InputError(f"is {settings.path!r}, a folder; use source=folder", source=source, field="path")
    return commit


def model_folder(settings: ModelSettings) -> str:
    """Return the folder of a model with ``source=folder``, checked for what has to be in it.

    Parameters
    ----------
    settings : ModelSettings
        With ``source=folder``.

    Returns
    -------
    str
        Its path.

    Raises
    ------
    InputError
        If it is no folder of a model, or its weights are pickled.
    """
    folder = Path(str(settings.path)).expanduser()
    if not (folder / "config.json").is_file():
        raise InputError(
            f"{folder} has no config.json; a folder in the Hub's layout is needed",
            source=f"model {settings.name!r}",
            field="path",
        )
    if not list(folder.glob("*.safetensors")):
        raise InputError(
            f"{folder} has no .safetensors file; pickled weights (.bin, .pt) are not read, because reading them runs "
            "what they hold: convert them first",
            source=f"model {settings.name!r}",
            field="path",
        )
    return str(folder)


def from_pretrained(
    settings: ModelSettings, place: str, **more: Any
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load module and tokenizer: safetensors only, no code of the repository, every weight there.

    Parameters
    ----------
    settings : ModelSettings
    place : str
        Folder or repository.
    **more
        Passed on to both, such as ``gguf_file``.

    Returns
    -------
    module : transformers.PreTrainedModel
    tokenizer : transformers.PreTrainedTokenizerBase

    Raises
    ------
    InputError
        In one line, whatever goes wrong.
    """
    import torch  # noqa: PLC0415
    from safetensors import SafetensorError  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    common = {"revision": settings.revision, "trust_remote_code": False, **more}
    common = {key: value for key, value in common.items() if value is not None}
    source = f"model {settings.name!r}"
    try:
        tokenizer = AutoTokenizer.from_pretrained(place, **common)
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            place,
            dtype=getattr(torch, settings.dtype),
            attn_implementation=settings.attention,
            output_loading_info=True,
            # told in one line by the check below
            ignore_mismatched_sizes=True,
            **({} if more else {"use_safetensors": True}),
            **common,
        )
    except OSError as error:
        raise InputError(_why_not_found(settings, place, error), source=source) from error
    except (ValueError, KeyError, ImportError, SafetensorError) as error:
        told = " ".join(str(error).split())
        first = told[:300]
        if "trust_remote_code" in told:
            first = "it needs Python code of its repository, which is never run here"
        if "attn_implementation" in told or "attention implementation" in told:
            raise InputError(
                f"is {settings.attention!r}, which this model does not have; use eager",
                source=source,
                field="attention",
            ) from error
        raise InputError(f"{place} cannot be loaded: {first}", source=source) from error
    module, found = loaded
    _check_complete(settings, place, found)
    return module, tokenizer


def _check_complete(settings: ModelSettings, place: str, found: Mapping[str, Any]) -> None:
    """Refuse weights that do not fit the configuration: transformers fills the gaps with random numbers."""
    for kind, what in (("missing_keys", "has no weights for"), ("mismatched_keys", "has weights of another shape for")):
        wrong = sorted(str(key if isinstance(key, str) else key[0]) for key in found.get(kind) or ())
        if wrong:
            more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
            raise InputError(
                f"{place} {what} {', '.join(wrong[:3])}{more}, which its config.json asks for",
                source=f"model {settings.name!r}",
            )
    unused = sorted(str(key) for key in found.get("unexpected_keys") or ())
    if unused:
        log.warning("%s: %d weights have no place in the model, %s first", settings.name, len(unused), unused[0])


def _why_not_found(settings: ModelSettings, place: str, error: OSError) -> str:
    first = " ".join(str(error).split())[:200]
    if settings.source != "hub":
        return f"{place} cannot be loaded: {first}"
    return (
        f"{place} at revision {settings.revision} is neither in the local cache nor to be had from the Hub ({first}); "
        "without a network, copy a snapshot of it here and use source=folder path=FOLDER, or use the model smollm2, "
        "which a package carries"
    )
