"""Words of all scripts, by hand."""

from __future__ import annotations

import pytest

from shannon_game.estimators.word_spans import word_spans


def words_of(text: str, **settings: str) -> list[str]:
    return [text[word.start : word.stop] for word in word_spans(text, **settings)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("“Quoted” word—dash don\u2019t", ["“Quoted”", "word—dash", "don\u2019t"]),
        ("a\u00a0b\u3000c\u2009d\n e", ["a", "b", "c", "d", "e"]),
        ("그는 집에 갔다.", ["그는", "집에", "갔다."]),
        (" … ", ["…"]),
    ],
)
def test_between_white_space(text: str, words: list[str]) -> None:
    assert words_of(text) == words
    assert all(word.is_spaced for word in word_spans(text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("今日は良い天気です。", ["今日", "は", "良い", "天気", "です。"]),
        ("「你好」、世界。", ["「你好」、", "世界。"]),
        ("……《红楼梦》(1791)好看吗。 ok, fine", ["……《红楼梦》", "(1791)", "好看", "吗。", "ok,", "fine"]),
        ("ฉันกินข้าว", ["ฉัน", "กิน", "ข้าว"]),
    ],
)
def test_by_icu_in_scripts_without_spaces(text: str, words: list[str]) -> None:
    pytest.importorskip("icu")
    assert words_of(text) == words
    assert [word.is_spaced for word in word_spans(text)] == [word in text.split() for word in words]
    assert words_of(text, boundaries="spaces") == text.split()
