"""The store: atomic, shared, checked; and the driver that computes only what is missing."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.stored import StoredResults, compute_stored
from shannon_game.inference.store import files as store_files
from shannon_game.inference.store import keys as store_keys
from shannon_game.inference.store.keys import Shard, context_seed, operation_key, parse_shard, result_key
from shannon_game.inference.store.store import Store, open_store, ragged

ROOT = Path(__file__).parents[3]
OPERATION = operation_key("square", model={"weights": "abc", "temperature": 1.0}, parameters={"seed": 3})


def numbers(n: int, start: int = 0) -> tuple[list[int], list[str]]:
    items = list(range(start, start + n))
    return items, [result_key(item) for item in items]


def square(items: list[int]) -> dict[str, NDArray[Any]]:
    """Deterministic results, and random ones from the item alone."""
    draws = [np.random.default_rng(context_seed(3, result_key(item))).normal(size=4) for item in items]
    return {
        "square": np.array(items) ** 2,
        "draws": np.array(draws),
        "name": np.array([f"é {item}\x00" for item in items], dtype=object),
        "tail": ragged([np.arange(item % 3, dtype=np.float32) for item in items]),
    }


def stored(*given: Any, batches: int = 64, **more: Any) -> StoredResults:
    """Compute in batches of so many items, in their order."""
    return compute_stored(
        *given, batches=lambda some: np.array_split(range(len(some)), -(-len(some) // batches)), **more
    )


def filled(folder: Path, n: int = 10, batches: int = 4) -> tuple[Store, list[int], list[str]]:
    store = open_store(folder)
    items, keys = numbers(n)
    stored(store, OPERATION, items, keys, square, batches=batches)
    return store, items, keys


def batch_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.arrow"))


def n_rows(folder: Path) -> int:
    return sum(len(store_files.read_keys(path, OPERATION)) for path in batch_files(folder))


def same(found: Mapping[str, NDArray[Any]], wanted: Mapping[str, NDArray[Any]]) -> None:
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype
        if name == "tail":
            for row, expected in zip(found[name], array, strict=True):
                assert row.dtype == expected.dtype
                np.testing.assert_array_equal(row, expected)
        else:
            np.testing.assert_array_equal(found[name], array)


# ----------------------------------------------------------------------------------------- append and read

ELEMENTS = st.sampled_from(["<f8", "<f4", "<i8", "<i4", "<u2", "?"])


@st.composite
def arrays_of(draw: st.DrawFn, n: int) -> dict[str, NDArray[Any]]:
    """Arrays of n rows of every form that the store takes."""
    shape = (n, *draw(st.lists(st.integers(1, 3), max_size=2)))
    numeric = draw(hnp.arrays(draw(ELEMENTS), shape))
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
    strings = draw(hnp.arrays(object, shape, elements=text))
    dtype = draw(ELEMENTS)
    rows = [draw(hnp.arrays(dtype, st.integers(0, 4))) for _ in range(n)]
    words = [draw(st.lists(text, max_size=3)) for _ in range(n)]
    lists = np.empty(n, dtype=object)
    for position, row in enumerate(words):
        lists[position] = np.array(row, dtype=object)
    return {"numeric": numeric, "strings": strings, "rows": ragged(rows), "lists": lists}


@given(data=st.data())
@settings(max_examples=30)
def test_what_is_read_is_what_was_appended(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("store")
    n = data.draw(st.integers(1, 5))
    arrays = data.draw(arrays_of(n))
    keys = [result_key("item", i) for i in range(n)]
    open_store(folder).append(OPERATION, keys, arrays)
    wanted = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=8))
    found = open_store(folder).read(OPERATION, [keys[i] for i in wanted])
    pairs = [(found["numeric"], arrays["numeric"][wanted]), (found["strings"], arrays["strings"][wanted])]
    pairs += [(found[name][row], arrays[name][i]) for name in ("rows", "lists") for row, i in enumerate(wanted)]
    for back, put in pairs:
        assert (back.dtype, back.shape) == (put.dtype, put.shape)
        # bit by bit: a NaN is equal to no number
        assert back.tolist() == put.tolist() if put.dtype == object else back.tobytes() == put.tobytes()


def test_operations_do_not_mix(tmp_path: Path) -> None:
    store, _, keys = filled(tmp_path)
    others = [
        operation_key("square", model={"weights": "abd", "temperature": 1.0}, parameters={"seed": 3}),
        operation_key("square", model={"weights": "abc", "temperature": 2.0}, parameters={"seed": 3}),
        operation_key("square", model={"weights": "abc", "temperature": 1.0}, parameters={"seed": 4}),
        operation_key("cube", model={"weights": "abc", "temperature": 1.0}, parameters={"seed": 3}),
    ]
    assert len({other.digest for other in [*others, OPERATION]}) == 5
    for other in others:
        assert len(store.missing(other, keys)) == len(keys)
    same_again = operation_key("square", model={"temperature": 1.0, "weights": "abc"}, parameters={"seed": 3})
    assert same_again == OPERATION
    assert len(store.missing(same_again, keys)) == 0


def test_results_of_other_code_are_computed_again_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def cube(items: list[int]) -> dict[str, NDArray[Any]]:
        return {"cube": np.array(items) ** 3}

    def cube_of(items: list[int]) -> dict[str, NDArray[Any]]:
        return {"cube": np.array(items) * np.array(items) ** 2}

    def asked(compute: Any) -> int:
        operation = operation_key("cube", model={"weights": "abc"}, parameters={}, compute=compute)
        items, keys = numbers(5)
        return stored(open_store(tmp_path), operation, items, keys, compute).n_computed

    with caplog.at_level(logging.WARNING, "shannon-game"):
        assert [asked(cube), asked(cube)] == [5, 0]
        other = operation_key("cube", model={"weights": "abd"}, parameters={}, compute=cube)
        assert len(open_store(tmp_path).missing(other, ["k"])) == 1
        assert caplog.messages == []
        assert [asked(cube_of), asked(cube_of), asked(cube)] == [5, 0, 0]
        assert [message.endswith("made by other code, and are computed again") for message in caplog.messages] == [True]
        monkeypatch.setattr(store_keys, "code_hash", lambda *names: "another")
        assert [asked(cube), asked(cube)] == [5, 0]
        assert len(caplog.messages) == 3


# ------------------------------------------------------------------------------------ what is wrong is named


def change(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.75, 0.999])
def test_a_changed_byte_is_found_and_the_file_named(share: float, tmp_path: Path) -> None:
    _, items, keys = filled(tmp_path, 10, batches=10)
    (path,) = batch_files(tmp_path)
    change(path, int(share * path.stat().st_size))
    with pytest.raises(InputError, match=f"{path.name}: .*move it away"):
        stored(open_store(tmp_path), OPERATION, items, keys, square)
    path.unlink()
    again = stored(open_store(tmp_path), OPERATION, items, keys, square)
    assert again.n_computed == 10


def foreign_text(folder: Path) -> Path:
    path = folder / "notes.txt"
    path.write_text("mine")
    return path


def foreign_arrow(folder: Path) -> Path:
    path = folder / ("1" * 64 + ".arrow")
    table = pa.table({"key": ["a"]})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return path


def of_another_operation(folder: Path) -> Path:
    other = operation_key("cube", model={}, parameters={})
    return put(folder, store_files.encode(other, [result_key(1)], {"x": np.zeros(1)}, {}))


def of_another_version(folder: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_files, "SCHEMA_VERSION", 99)
        return put(folder, store_files.encode(OPERATION, [result_key(1)], {"x": np.zeros(1)}, {}))


def put(folder: Path, content: memoryview) -> Path:
    path = folder / f"{hashlib.sha256(content).hexdigest()}.arrow"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (foreign_text, "is no file of this store; move it away"),
        (foreign_arrow, "is an Arrow file, but was not written by a store"),
        (of_another_operation, "holds results of another operation"),
        (of_another_version, "schema_version: is 99, this version of shannon-game reads 1"),
    ],
)
def test_foreign_files_are_named(spoil: Callable[[Path], Path], message: str, tmp_path: Path) -> None:
    _, _, keys = filled(tmp_path)
    path = spoil(batch_files(tmp_path)[0].parent)
    with pytest.raises(InputError, match=message) as caught:
        open_store(tmp_path).missing(OPERATION, keys)
    assert path.name in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[" * 100_000, "is damaged"),
        ("\udcff", "is damaged"),
        ("[]", "does not say"),
        ('{"format": "shannon-game store", "schema_version": 7}', "is 7, this version of shannon-game reads 1"),
    ],
)
def test_a_folder_with_a_wrong_marker_is_refused(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "store.json").write_text(content, errors="surrogateescape")
    with pytest.raises(InputError, match=message):
        open_store(tmp_path)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(InputError, match=r"is no store and not empty \(it holds thesis.tex\)"):
        open_store(tmp_path)
    with pytest.raises(InputError, match="cannot be used as a store"):
        open_store(tmp_path / "thesis.tex")
    assert open_store(tmp_path / "new" / "store").folder.is_dir()


def test_half_written_files_do_not_count_and_go_away_when_old(tmp_path: Path) -> None:
    _, _, keys = filled(tmp_path)
    folder = batch_files(tmp_path)[0].parent
    young, old = folder / ".a.partial.arrow", folder / ".b.partial.arrow"
    for path in (young, old):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    assert len(open_store(tmp_path).missing(OPERATION, keys)) == 0
    assert young.exists()
    assert not old.exists()


@pytest.mark.parametrize(
    "step", [(Path, "mkdir"), (Path, "open"), (os, "fsync"), (Path, "replace")], ids=lambda s: s[1]
)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
def test_a_disk_that_takes_nothing_is_told_in_one_line_and_nothing_half_is_left(
    step: tuple[Any, str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, items, keys = filled(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    more, more_keys = numbers(4, start=100)

    def fails(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as full:
        full.setattr(*step, fails)
        with pytest.raises(InputError, match=rf"cannot be written to: {os.strerror(code)}") as caught:
            stored(store, OPERATION, more, more_keys, square)
        assert str(tmp_path) in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before
    same(stored(store, OPERATION, [*items, *more], [*keys, *more_keys], square).arrays, square([*items, *more]))


# ------------------------------------------------------------------------------------------ keys and seeds


def test_keys_tell_contents_apart_and_nothing_else() -> None:
    contents: list[tuple[Any, ...]] = [("12",), (12,), ([12],), ("1", "2"), ("1,2",), (["1", "2"],), ("",), (), (None,)]
    assert len({result_key(*content) for content in contents}) == len(contents)
    assert result_key(np.array([1, 2])) == result_key([1, 2]) == result_key((1, 2))
    assert result_key("\ud83d") != result_key("\ufffd")
    # SHA-256 of ["a"]; another hash would make every store on disk worthless
    assert result_key("a") == hashlib.sha256(b'["a"]').hexdigest()[:32]


@pytest.mark.parametrize("text", ["8/8", "-1/8", "0/0", "1", "a/b", "0/8/2", 3, ""])
def test_wrong_shards(text: Any) -> None:
    with pytest.raises(InputError, match="should be i/n with i from 0 to n - 1"):
        parse_shard(text)
    assert parse_shard(None) is None


def test_shards_divide_the_keys_evenly() -> None:
    keys = [result_key(i) for i in range(8000)]
    parts = np.array([Shard(i, 8).holds(keys) for i in range(8)])
    assert (parts.sum(axis=0) == 1).all()
    # binomial with mean 1000 and sd 29.6
    assert np.abs(parts.sum(axis=1) - 1000).max() < 5 * 29.6


# -------------------------------------------------------------------------------------------- compute_stored


def test_only_what_is_missing_is_computed(tmp_path: Path) -> None:
    computed: list[int] = []

    def count(items: list[int]) -> dict[str, NDArray[Any]]:
        computed.extend(items)
        return square(items)

    items, keys = numbers(10)
    told: list[tuple[int, int]] = []
    first = stored(open_store(tmp_path), OPERATION, items, keys, count, batches=4, progress=lambda *x: told.append(x))
    assert (first.n_computed, first.n_found) == (10, 0)
    assert told[0] == (0, 10)
    assert told[-1] == (10, 10)
    more_items, more_keys = numbers(12, 5)
    # twice in the list, once in the work
    second = stored(open_store(tmp_path), OPERATION, more_items * 2, more_keys * 2, count, batches=100)
    assert (second.n_computed, second.n_found) == (7, 5)
    assert sorted(computed) == list(range(17))
    same(second.arrays, square(more_items * 2))
    third = stored(open_store(tmp_path), OPERATION, more_items, more_keys, count)
    assert (third.n_computed, third.n_found) == (0, 12)
    assert (n_rows(tmp_path), len(batch_files(tmp_path))) == (17, 4)


def test_what_goes_on_after_a_stop_has_the_batches_of_one_run(tmp_path: Path) -> None:
    """What is in a batch decides the last digits of a model's numbers."""
    items, keys = numbers(12)
    stop_after = 2

    def in_order_of_size(some: list[int]) -> list[list[int]]:
        return list(_filled(some, room=14))

    def batches_of(folder: Path, n_before: int) -> list[tuple[int, ...]]:
        batches: list[tuple[int, ...]] = []

        def noted(batch: list[int]) -> dict[str, NDArray[Any]]:
            if len(batches) == n_before:
                raise KeyboardInterrupt
            batches.append(tuple(batch))
            return square(batch)

        with suppress(KeyboardInterrupt):
            compute_stored(open_store(folder), OPERATION, items, keys, noted, batches=in_order_of_size)
        return batches

    whole = batches_of(tmp_path / "whole", 99)
    for trial in range(5):
        folder = tmp_path / str(trial)
        assert sorted(batches_of(folder, stop_after) + batches_of(folder, 99)) == sorted(whole)


def _filled(sizes: list[int], room: int) -> Iterator[list[int]]:
    batch, left = list[int](), room
    for at in sorted(range(len(sizes)), key=lambda at: -sizes[at]):
        if batch and sizes[at] > left:
            yield batch
            batch, left = [], room
        batch.append(at)
        left -= sizes[at]
    yield batch


def test_a_duplicate_reads_the_same_in_every_process(tmp_path: Path) -> None:
    """Two processes computed one key with differences in the last digits, as batches of other sizes give."""
    key = result_key(0)
    for order in ([1.0, 2.0], [2.0, 1.0]):
        folder = tmp_path / str(order[0])
        store = open_store(folder)
        for value in order:
            store.append(OPERATION, [key], {"x": np.array([value])})
            # takes each file in as it comes
            store.missing(OPERATION, [key])
        assert store.read(OPERATION, [key])["x"] == open_store(folder).read(OPERATION, [key])["x"]
        assert n_rows(folder) == 2
    assert len({float(open_store(tmp_path / str(x)).read(OPERATION, [key])["x"][0]) for x in (1.0, 2.0)}) == 1


WORKER = """
import os, sys, time
from pathlib import Path
from shannon_game.inference.store.store import open_store
from tests.inference.store.test_store import OPERATION, numbers, square, stored

def slow(items):
    time.sleep(.02)
    return square(items)

folder = Path(sys.argv[1])
# neither begins before the other is there
folder.with_name(f"{os.getpid()}.ready").touch()
while len(list(folder.parent.glob("*.ready"))) < 2:
    time.sleep(.01)
result = stored(open_store(folder), OPERATION, *numbers(60), slow, batches=2)
print(result.n_computed, result.n_found)
"""


@pytest.mark.subprocess
def test_two_processes_fill_one_store(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WORKER, str(tmp_path / "store")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    both = [subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    counts = [tuple(map(int, process.communicate(timeout=600)[0].split())) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert all(computed + found == 60 for computed, found in counts)
    store = open_store(tmp_path / "store")
    items, keys = numbers(60)
    same(store.read(OPERATION, keys), square(items))
    # what both computed has the same bytes here, and so is one file
    assert n_rows(tmp_path / "store") == 60
    # both worked, and not all of it twice
    assert all(computed > 0 for computed, _ in counts)
    assert sum(computed for computed, _ in counts) < 110
