"""Loading a GGUF file, and keeping what it was converted to, as the conversion takes half a minute."""

from __future__ import annotations

import logging
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from shannon_game.estimators.code_identity import code_hash, package_version
from shannon_game.estimators.errors import require_packages
from shannon_game.inference.lm.checkpoints import from_pretrained
from shannon_game.inference.lm.gguf_header import read_gguf_header
from shannon_game.inference.lm.model_files import check_counts, hash_files, model_files
from shannon_game.inference.lm.settings import ModelSettings
from shannon_game.inference.manifest import SCRATCH, is_sealed, remove_scratch, seal
from shannon_game.inference.store.keys import model_versions, result_key

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

log = logging.getLogger(__name__)

_PARTIAL = f"{SCRATCH}partial-"
_ABANDONED_SECONDS = 3600.0


def load_gguf(settings: ModelSettings, path: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, str]:
    """Load a GGUF file, or the copy in the Hub's layout that is kept of it."""
    require_packages(("gguf", "accelerate"), "lm", source=f"model {settings.name!r}", field="path (a GGUF file)")
    header = read_gguf_header(path)
    check_counts(header.numbers, header.n_tensors, path)
    digest = hash_files([path])
    converted = _converted_folder(digest) if settings.cache else None
    if converted is not None and _is_as_it_was(converted):
        module, tokenizer = from_pretrained(settings, converted, model_files(converted).n_elements)
        return module, tokenizer, digest
    log.warning("%s: reading %s takes about half a minute", settings.name, path.name)
    with tempfile.TemporaryDirectory() as alone:
        # what lies beside the file is none of its model: a tokenizer's settings, an adapter
        (Path(alone) / path.name).symlink_to(path.resolve())
        # weights come out in float32 whatever is asked for, so that the copy kept serves every dtype
        module, tokenizer = from_pretrained(
            settings.changed(dtype="float32"), Path(alone), header.n_elements, gguf_file=path
        )
    module = _plain(module)
    if converted is not None:
        _keep_converted(module, tokenizer, converted)
    import torch  # noqa: PLC0415

    return module.to(getattr(torch, settings.dtype)), tokenizer, digest


def _plain(module: PreTrainedModel) -> PreTrainedModel:
    """Return the same weights in a model that does not think of itself as quantised (and so can be saved)."""
    import torch  # noqa: PLC0415
    from transformers import AutoModelForCausalLM  # noqa: PLC0415

    config = type(module.config).from_dict(
        {key: value for key, value in module.config.to_dict().items() if key != "quantization_config"}
    )
    # the only place where transformers keeps it
    attention = module.config._attn_implementation
    plain = AutoModelForCausalLM.from_config(config, attn_implementation=attention, dtype=torch.float32)
    plain.load_state_dict(module.state_dict())
    plain.tie_weights()
    checked: PreTrainedModel = plain
    return checked


def _converted_folder(digest: str) -> Path:
    import pooch  # noqa: PLC0415

    # a tokenizer is converted by transformers' own rules, weights by gguf's, which change between versions
    of = [digest, code_hash("shannon_game.inference.lm"), *model_versions(), package_version("gguf")]
    return Path(pooch.os_cache("shannon-game")) / "models" / result_key(of)


def _keep_converted(module: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    from safetensors import SafetensorError  # noqa: PLC0415 - comes with the extra lm

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # of a process that was killed: hundreds of megabytes, to which nobody comes back
        for left in folder.parent.glob(f"{_PARTIAL}*"):
            if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                remove_scratch(left)
        staging = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=folder.parent))
        try:
            new = staging / "new"
            module.save_pretrained(new)
            tokenizer.save_pretrained(new)
            seal(new)
            # another process may have made it meanwhile, and read it now
            if folder.is_dir() and not _is_as_it_was(folder):
                folder.rename(staging / "damaged")
            new.rename(folder)
        finally:
            remove_scratch(staging)
    except (OSError, SafetensorError) as error:
        if not folder.is_dir():
            log.warning("the converted model could not be kept in %s: %s", folder, error)


def _is_as_it_was(folder: Path) -> bool:
    """Whether a converted model is there, with every file as it was written."""
    if not folder.is_dir():
        return False
    try:
        same = is_sealed(folder)
    except OSError:
        same = False
    if not same:
        log.warning("the converted model in %s was changed since, and is made anew", folder)
    return same
