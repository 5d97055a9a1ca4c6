"""A prompt in the model's own tokens: as a turn of a chat where the model was trained for one."""

from __future__ import annotations

from collections.abc import Sequence

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.language_model import LanguageModel, encode
from shannon_game.inference.lm.words import word_tokens


def prompt_tokens(model: LanguageModel, prompts: Sequence[tuple[str, str]]) -> list[list[int]]:
    """Tokenise prompts, what the system and the user say, up to the place where the model answers, with the BOS token.

    A tokenizer with a chat template writes them as messages of the system and the user. Without one the two texts, if
    they are not empty, follow the BOS token, with an empty line between them and a line break at the end.
    """
    for position, prompt in enumerate(prompts):
        if not any(prompt):
            raise InputError(f"is empty at position {position}", field="prompts")
    if model.tokenizer.chat_template:
        return encode(model, [_chat(model, *prompt) for prompt in prompts], special=True)
    start = [] if model.bos_id is None else [model.bos_id]
    plain = ["\n\n".join(text for text in prompt if text) + "\n" for prompt in prompts]
    return [start + tokens for tokens in encode(model, plain)]


def _chat(model: LanguageModel, system: str, user: str) -> str:
    from jinja2 import TemplateError  # noqa: PLC0415 - it comes with torch

    both = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    ways = [
        [message for message in both if message["content"]],
        # some templates know no system
        [{"role": "user", "content": "\n\n".join(text for text in (system, user) if text)}],
    ]
    for messages in ways:
        try:
            return str(model.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
        except TemplateError as error:
            problem = error
    raise InputError(f"has a chat template that cannot be filled in: {problem}", source=f"model {model.name!r}")


def end_tokens(model: LanguageModel) -> frozenset[int]:
    """Tokens with which the model ends an answer."""
    settings = getattr(model.module, "generation_config", None)
    given = getattr(settings, "eos_token_id", None)
    several = given if isinstance(given, list | tuple) else [given]
    return frozenset(
        int(token) for token in (*several, model.tokenizer.eos_token_id, model.bos_id) if token is not None
    )


def option_tokens(model: LanguageModel, option: str) -> list[int]:
    """Tokens that are an option such as "A" and nothing else, with a space before it or without."""
    ways = [word_tokens(model, text) for text in (option, " " + option)]
    found = [tokens[0] for tokens in ways if len(tokens) == 1]
    if not found:
        raise InputError(f"is {option!r}, which {model.name} has no token for", field="option")
    return list(dict.fromkeys(found))
