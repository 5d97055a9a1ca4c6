"""Reading a model in the Hub's layout: from a folder, or from the Hub and its local cache."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from socket import getaddrinfo
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies
from warnings import catch_warnings, filterwarnings

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.inference.lm.model_files import CONFIG, WEIGHTS, weight_files
from shannon_game.inference.lm.settings import SPREAD, ModelSettings

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

log = logging.getLogger(__name__)

# sixteen weights of two bits fit in one number of 32
_MOST_A_WEIGHT = 16
_ALWAYS_FITS = 1 << 24


def hub_commit(settings: ModelSettings) -> str:
    """Return the commit that the revision of a model with ``source=hub`` stands for."""
    from transformers.utils.hub import cached_file  # noqa: PLC0415

    source = f"model {settings.name!r}"
    with one_line(settings):
        file = cached_file(str(settings.path), CONFIG, revision=settings.revision, local_files_only=_is_offline())
    # the cache keeps a repository's files by commit
    commit = Path(str(file)).parent.name
    if not re.fullmatch("[0-9a-f]{40}", commit):
        raise InputError(f"is {settings.path!r}, a folder; use source=folder", source=source, field="path")
    return commit


def _is_offline() -> bool:
    """Whether nobody knows the Hub's address: the library would try five times, for a minute. A proxy may know it."""
    from huggingface_hub import constants  # noqa: PLC0415

    try:
        return not getproxies() and not getaddrinfo(urlsplit(constants.ENDPOINT).hostname, 443)
    except OSError:
        return True


def hub_folder(settings: ModelSettings, commit: str) -> Path:
    """Return the folder of the local cache that holds a repository's files, fetched if need be: no pickled ones."""
    from huggingface_hub import snapshot_download  # noqa: PLC0415

    offline = _is_offline()

    def fetched(*patterns: str) -> Path:
        with one_line(settings):
            # whatever lies in folders below is not of this model, or of another form
            found = snapshot_download(
                str(settings.path),
                revision=commit,
                allow_patterns=list(patterns),
                ignore_patterns="*/*",
                local_files_only=offline,
            )
        return Path(found)

    folder = fetched("*.json", "*.txt", "*.model", "*.tiktoken", WEIGHTS)
    return fetched(*(path.name for path in weight_files(folder)))


def from_pretrained(
    settings: ModelSettings, folder: Path, n_elements: int, *, gguf_file: Path | None = None, masked: bool = False
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load module and tokenizer: safetensors or GGUF alone, no code of the repository, every weight there."""
    import torch  # noqa: PLC0415
    from transformers import (  # noqa: PLC0415
        AutoConfig,
        AutoModelForCausalLM,
        AutoModelForMaskedLM,
        AutoModelForSeq2SeqLM,
        AutoTokenizer,
    )

    # None lets transformers choose
    attention = None if settings.attention == "auto" else settings.attention
    common: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
    common |= {} if gguf_file is None else {"gguf_file": gguf_file.name}
    place = gguf_file or folder
    memory = {int(name) if name.isdigit() else name: most for name, most in (settings.max_memory or {}).items()} or None
    with one_line(settings, gguf_file or folder / CONFIG):
        config = AutoConfig.from_pretrained(str(folder), **common)
        # AutoModelForCausalLM would leave an encoder out
        auto: Any = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        auto = AutoModelForMaskedLM if masked else auto
        if settings.encoder_text is not None and not config.is_encoder_decoder:
            problem = f"is set, and {folder} ({config.model_type}) has no encoder that reads it; leave it out"
            raise InputError(problem, source=f"model {settings.name!r}", field="encoder_text")
        if masked and (config.is_encoder_decoder or type(config) not in auto._model_mapping):
            raise InputError(
                f"is {folder}, a model ({config.model_type}) that fills no masks; use a masked model such as BERT, or "
                f"{Set('experiment.method', 'causal')}",
                source=f"model {settings.name!r}",
                field="path",
            )
        with torch.device("meta"):
            empty = auto.from_config(config, attn_implementation=attention)
        _check_size(gguf_file or folder / CONFIG, [*empty.parameters(), *empty.buffers()], n_elements)
        del empty
    with one_line(settings, f"the tokenizer of {place}"):
        tokenizer = AutoTokenizer.from_pretrained(str(folder), **common)
    with one_line(settings, place):
        loaded: Any = auto.from_pretrained(
            str(folder),
            dtype=getattr(torch, settings.dtype),
            attn_implementation=attention,
            output_loading_info=True,
            # told in one line by the check below
            ignore_mismatched_sizes=True,
            # of a GGUF file transformers does not take this
            **({"use_safetensors": True} if gguf_file is None else {}),
            **({"device_map": "auto", "max_memory": memory} if settings.device == SPREAD else {}),
            **common,
        )
    module, found = loaded
    _check_complete(settings, place, found)
    head = module.get_output_embeddings()
    # a head on the disk is not looked at
    if head is None or not (head.weight.is_meta or bool(head.weight.any())):
        raise InputError(
            f"{place} has no output embedding, or one of zeros; every next token would be as probable as any other",
            source=f"model {settings.name!r}",
        )
    return module, tokenizer


def as_causal(module: PreTrainedModel, source: Sequence[int], device: torch.device) -> None:
    """Let a model with an encoder be called as a causal one: tokens go to its decoder, after one source for all."""
    import torch  # noqa: PLC0415
    from transformers.modeling_outputs import BaseModelOutput  # noqa: PLC0415

    whole, encoder = module.forward, module.get_encoder()
    with torch.no_grad():
        states = encoder(input_ids=torch.tensor([list(source)], device=device)).last_hidden_state

    def forward(input_ids: torch.Tensor, **_: object) -> Any:
        its = states.expand(len(input_ids), -1, -1)
        seen = torch.ones(its.shape[:2], dtype=torch.int64, device=its.device)
        given = BaseModelOutput(last_hidden_state=its)
        return whole(encoder_outputs=given, attention_mask=seen, decoder_input_ids=input_ids, use_cache=False)

    module.forward = forward


def with_adapter(settings: ModelSettings, module: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """Merge a LoRA adapter into the weights of a model; one that does not fit it is refused."""
    source = f"model {settings.name!r}"
    if find_spec("peft") is None:
        raise InputError("needs peft, which is not installed: pip install peft", source=source, field="adapter")
    from peft import PeftModel  # noqa: PLC0415 - no extra has it

    with one_line(settings, folder), catch_warnings():
        # peft warns of missing weights, and leaves what it made up
        filterwarnings("error", message=".*missing adapter keys")
        merged: PreTrainedModel = PeftModel.from_pretrained(module, str(folder)).merge_and_unload()
    return merged


@contextmanager
def one_line(settings: ModelSettings, place: object = None, problem: str = "cannot be loaded") -> Iterator[None]:
    """Say in one line what a model's files made torch, transformers or tokenizers raise."""
    source = f"model {settings.name!r}"
    try:
        yield
    except InputError:
        raise
    except BaseException as error:
        # what Rust gives up with, for a tokenizer say, is no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        # torch adds the frames of its own code
        told = " ".join(str(error).split()).split(" Exception raised from ")[0]
        if not told or isinstance(error, LookupError | TypeError | AttributeError | RecursionError):
            told = f"{type(error).__name__} {told}".strip()
        if place is None:
            raise InputError(_why_not_found(settings, told), source=source) from error
        if "attn_implementation" in told or "attention implementation" in told:
            raise InputError(
                f"is {settings.attention!r}, which this model does not have; use eager",
                source=source,
                field="attention",
            ) from error
        first = told[:300]
        if isinstance(error, ModuleNotFoundError) and error.name:
            # of a quantised checkpoint
            first = f"it needs a package that is not installed: pip install {error.name.partition('.')[0]}"
        if "trust_remote_code" in told:
            first = "it needs Python code of its repository, which is never run here"
        raise InputError(f"{place} {problem}: {first}", source=source) from error


def _check_size(source: Path, tensors: Sequence[torch.Tensor], n_elements: int) -> None:
    """Refuse a configuration that asks for far more numbers than the files have: transformers would make them up."""
    wanted = sum(tensor.numel() for tensor in tensors)
    if wanted > _MOST_A_WEIGHT * n_elements + _ALWAYS_FITS:
        largest = max(tensors, key=lambda tensor: tensor.numel())
        raise InputError(
            f"asks for {wanted:,} numbers, {tuple(largest.shape)} the largest part; the weights are {n_elements:,}",
            source=source,
        )


def _check_complete(settings: ModelSettings, place: Path, found: Mapping[str, Any]) -> None:
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


def _why_not_found(settings: ModelSettings, told: str) -> str:
    why = told.partition(". ")[0][:200]
    return (
        f"{settings.path} at revision {settings.revision} is neither in the local cache nor to be had from the Hub "
        f"({why}); without a network, copy a snapshot of it here and use source=folder path=FOLDER, or use the model "
        "smollm2, which a package carries"
    )
