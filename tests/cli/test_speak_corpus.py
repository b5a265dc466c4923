"""heed speak-corpus: texts read aloud by espeak-ng."""

import shutil

import pytest

from heed.audio import files
from heed.cli.main import main
from heed.data.audio import manifests
from heed.data.synthetic import spoken as synthetic

spoken = pytest.mark.skipif(
    shutil.which("espeak-ng") is None, reason="espeak-ng is not installed (make test installs it)"
)


@spoken
def test_lines_are_read_aloud_in_drawn_voices(tmp_path, capsys):
    (tmp_path / "text.tsv").write_text("나는 책을 읽어요.\tI read books.\n\n안녕하세요.\tHello.\n", "utf-8")
    arguments = ["speak-corpus", str(tmp_path / "text.tsv"), "--language", "ko", "--each", "2", "--rate", "8000"]
    for name in ("one", "two"):
        assert main([*arguments, "--out", str(tmp_path / name)]) == 0
    assert "4 recordings in " in capsys.readouterr().out
    own, other = (manifests.read(str(tmp_path / "one" / f"{name}.tsv")) for name in ("manifest", "translation"))
    assert [one.text for one in own] == ["나는 책을 읽어요."] * 2 + ["안녕하세요."] * 2
    assert [one.text for one in other] == ["I read books."] * 2 + ["Hello."] * 2
    sounds = [files.read(one.path) for one in own]
    assert all(sound.rate == 8000 and 0.3 < sound.seconds < 10 for sound in sounds)
    assert len({one.path.read_bytes() for one in own}) == 4
    for one in own:  # the same seed, the same recordings
        assert one.path.read_bytes() == (tmp_path / "two" / one.path.relative_to(tmp_path / "one")).read_bytes()


CHAT = ["고마워ㅋㅋ", "미안해 ㅠㅠ", "그래 ㅎ", "고마워~", "네~!", "좋아요^^", "ㅇㅋ"]


def test_chat_spellings_are_left_out_and_counted(tmp_path, capsys, monkeypatch):
    said = []
    monkeypatch.setattr(synthetic, "speak", lambda lines, how, out, tell: said.extend(lines) or len(lines))
    lines = ["고마워.\tThanks.", *(f"{text}\tThanks." for text in CHAT), "뭐해?!\tHow about 3^2 ~ ㅋㅋ?"]
    (tmp_path / "text.tsv").write_text("\n".join(lines), "utf-8")
    assert main(["speak-corpus", str(tmp_path / "text.tsv"), "--out", str(tmp_path / "out")]) == 0
    assert [own[0] for own in said] == ["고마워.", "뭐해?!"]
    out, err = capsys.readouterr()
    assert out.startswith("2 recordings in ")
    assert err == "7 lines with chat spellings such as ㅋㅋ, ㅠㅠ, ~ or ^^ were left out.\n"
    (tmp_path / "text.tsv").write_text("\n".join(CHAT), "utf-8")
    assert main(["speak-corpus", str(tmp_path / "text.tsv"), "--out", str(tmp_path / "out")]) == 1
    assert "text.tsv: there is nothing to read aloud: all 7 lines have chat spellings" in capsys.readouterr().err


@spoken
@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--language", "xx"], "espeak-ng could not speak 'Hello.' in the voice xx+"),
        (["--voices", "a b"], "'a b' is not a language or a voice"),
        (["--speeds", "fast"], "--speeds is fast; give integers"),
        (["--speeds", "10"], "speeds are 10; they must be from 80 to 450 words per minute"),
        (["--each", "0"], "read each line at least once"),
    ],
)
def test_what_cannot_be_spoken_is_refused(tmp_path, capsys, more, words):
    (tmp_path / "text.txt").write_text("Hello.\n", "utf-8")
    assert main(["speak-corpus", str(tmp_path / "text.txt"), "--out", str(tmp_path / "out"), *more]) == 1
    assert words in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_without_espeak_the_command_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "text.txt").write_text("Hello.\n", "utf-8")
    assert main(["speak-corpus", str(tmp_path / "text.txt"), "--out", str(tmp_path / "out")]) == 1
    assert "espeak-ng is not installed; it synthesizes the speech: apt-get install espeak-ng" in capsys.readouterr().err
