"""What reads files of text: corpora, tables, word vectors, glossaries, recipes, logs, documents. `READERS` has every reader."""

import gzip
import io
import json
import lzma
import zipfile
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.fuzz import families, folders, images, media_folders, sounds
from bench.fuzz.cases import Case, Reader
from heed.data import conll, readers, squad, tables
from heed.data.documents import Boundaries
from heed.data.entities import entities
from heed.data.vectors import reading, store
from heed.evaluation import alignment
from heed.runs import distill, recipe
from heed.runs.report.log import read_training
from heed.service.http import runs
from heed.text import documents, glossary
from heed.text.inline import Translated

SOURCE = "나는 책을 읽어요.\n투빅아, 나는 너를 많이 사랑해.\n\n그는 \u3000학생이다 .\n".encode()
TARGET = "I read a book.\nTobig, I love you very much.\n\nHe's a “student”, isn't he?\n".encode()


def _packings(name: str, data: bytes) -> dict[str, bytes]:
    return {name: data, f"{name}.gz": gzip.compress(data), f"{name}.xz": lzma.compress(data, preset=0)}


def _pair_seeds() -> list[Case]:
    source, target = _packings("s", SOURCE), _packings("t", TARGET)
    return [{one: source[one], other: target[other]} for one, other in zip(source, target, strict=True)]


def _files(folder: Path, *starts: str) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.startswith(starts))


def _read_pairs(folder: Path) -> None:
    for line in readers.pairs(_files(folder, "s"), _files(folder, "t")):
        assert isinstance(line.source, str)


def _read_texts(folder: Path) -> None:
    for kind in ("file", "paragraph", "line"):
        boundaries = Boundaries(kind)
        count = sum(1 for _ in boundaries.watch(readers.texts(_files(folder, "s"))))
        boundaries.starts([1] * count)


TABLE = "text\tother\tlabel\nGood.\tfilm\tyes\nBad\tfilm\tno\n한국어\t\tno\n".encode()
QUESTIONS = [
    {"text": "Who?", "choices": ["a", "b", "c"], "label": 1},
    {"text": "한", "choices": ["x", "y", 3], "label": "B"},
]
JSON_LINES = "\n".join(map(json.dumps, QUESTIONS)).encode()


def _table_seeds() -> list[Case]:
    return [*({name: data} for name, data in _packings("a.tsv", TABLE).items()), {"a.jsonl": JSON_LINES}]


def _read_table(folder: Path) -> None:
    """As texts with labels, by number and by name, and as questions."""
    kinds = (tables.table, tables.QuestionTable(first=1), tables.QuestionTable(choices=2))
    for path in folder.iterdir():
        named = (["text", "label"], ["text", "choices", "label"])
        columns = named if "jsonl" in path.name else (*named, [1, 3], [1, 2, 3])
        _one_of(
            folder, [lambda read=read, own=own, path=path: list(read(path, own)) for own in columns for read in kinds]
        )


def _one_of(folder: Path, ways: Sequence[Callable[[], Any]]) -> None:
    """Read in one of several ways, which the bytes of the case choose: so each case is quick, and the same whenever it is read."""
    key = 0
    for path in sorted(folder.rglob("*")):
        key = zlib.crc32(path.read_bytes(), key) if path.is_file() else key
    ways[key % len(ways)]()


CONLL = "-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects VBZ O\nPeter NNP B-PER\nBlackburn NNP I-PER\n\n서울 NNP S-LOC\n에 JKB O\n".encode()


def _read_conll(folder: Path) -> None:
    for path in folder.iterdir():
        found = conll.read(path)
        conll.read(path, 2, None)
        conll.check_scheme(found.sentences, conll.find_scheme(found.sentences, repair=True), repair=True)
        known = sorted({label for one in found.sentences for label in one.labels})
        for one in found.sentences:
            entities(one.labels)
            conll.relabelled(one, conll.find_scheme(found.sentences), known)


SQUAD = {
    "version": "v2.0",
    "data": [{"title": "t", "paragraphs": [{"context": "Seoul is in Korea.", "qas": [
        {"id": "1", "question": "Where?", "is_impossible": False, "answers": [{"text": "Korea", "answer_start": 12}]},
        {"id": "2", "question": "Why?", "is_impossible": True, "answers": []},
        {"id": 3, "question": "Who?"},
    ]}]}],
}  # fmt: skip


def _read_squad(folder: Path) -> None:
    for path in folder.iterdir():
        found = squad.read(path)
        squad.has_unanswerable(found)
        assert all(isinstance(one.misaligned, str) for one in found)


def _vector_seeds() -> list[Case]:
    rows = {"the": (0.1, -2.0, 3e-5), "서울": (1.0, 0.0, 2.5), "New York": (3.0, 4.0, -1.0), "cat": (1.0, 2.0, 3.0)}
    text = "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows.items())
    binary = b"".join(word.encode() + b" " + np.array(row, "<f4").tobytes() + b"\n" for word, row in rows.items())
    glove, vec = text.encode(), f"{len(rows)} 3\n{text}".encode()
    ngrams = f"2 3\n<c 1.0 2.0 3.0\nat> {' '.join(['0.5'] * 3)}\n".encode()
    return [{"v.txt": glove}, {"v.vec": vec, "v.ngrams.bin": ngrams}, {"v.bin": b"4 3\n" + binary}, {"v.vec.gz": gzip.compress(vec)},
            {"v.txt.xz": lzma.compress(glove, preset=0)}]  # fmt: skip


def _read_vectors(folder: Path) -> None:
    path = next(iter(_files(folder, "v.")))
    own = store.from_file(path)
    near = (partial(store.neighbours, own, [word], 2) for word in ("cat", "catat"))
    _one_of(folder, [lambda: reading.read(path), lambda: list(reading.words(path)), *near])


TERMS = "학생\tpupil\n투빅스\tTobigs\niPhone\tiPhone\nNew York\t뉴욕\n".encode()
TEXTS = ("투빅스가 iPhone을 샀다. 학생, new york!", "", "New York NEW YORK \ud800 학생학생")


def _read_glossary(folder: Path) -> None:
    for path in folder.iterdir():
        found = glossary.read(path, keep=["Seoul"])
        for text in TEXTS:
            found.matches(text)


def _recipe_seeds() -> list[Case]:
    folder = Path(__file__).parents[2] / "recipes"
    return [{"a.toml": path.read_bytes()} for path in sorted(folder.glob("*.toml")) if path.stat().st_size < 20_000]


def _read_recipe(folder: Path) -> None:
    path = folder / "a.toml"
    own = [
        lambda: recipe.read(path, []).to_toml(),
        lambda: recipe.read(path, [], saved=True),
        lambda: distill.read(path, []),
    ]
    _one_of(folder, own)


LOG = (
    b'{"kind": "start", "heed": "1"}\n{"kind": "step", "step": 10, "loss": 4.5, "rate": 0.001, "tokens_per_second": 1000.0, "epoch": 0, "seconds": 3.5, '
    b'"steps": 600, "seconds_left": 20}\n{"kind": "valid", "step": 10, "loss": 4.1, "bleu": 3.2, "seconds": 4.0}\n{"kind": "end", "step": 10, "seconds": 5, '
    b'"weights": "step 10", "by": "steps", "cooldown_from": 0}\n'
)  # fmt: skip
SAMPLES = "나는 책을 읽어요.\n= I read a book.\n> I read the book.\n\nb\n= c\n> d\n\n".encode()
RUN = b'[task]\nname = "translation"\n[training]\nsteps = 600\n'


def _log_seeds() -> list[Case]:
    return [{"run/log.jsonl": LOG, "run/samples/step-000010.txt": SAMPLES, "run/recipe.toml": RUN}]


def _read_log(folder: Path) -> None:
    """As reports and pictures read it, and as the service does."""
    served = (
        lambda: runs.list_runs(folder),
        lambda: runs.read_run(folder, "run", 0),
        lambda: runs.read_samples(folder, "run"),
    )
    page = [lambda: json.dumps([read() for read in served], allow_nan=False).encode()]
    _one_of(folder, [lambda: read_training(folder / "run", ["loss", "bleu"]), *page])


def _read_alignment(folder: Path) -> None:
    for path in folder.iterdir():
        sure, possible = alignment.read_gold(path)
        alignment.error_rate(alignment.read(path), sure, possible)


def _read_keys(folder: Path) -> None:
    from heed.service.http import limits  # needs uvicorn, which a machine that only trains may lack

    for path in folder.iterdir():
        limits.read_keys(path)


DOCUMENTS = {
    "txt": "A title\n\n  1. First, see https://a.b/c?d=1 and me@x.org. Then: «stop»!\n\t- 다음. 가. 끝\r\n\"Mr. Smith\" paid $3.50 (no %s).\n",
    "md": "# Title\n\n* one *two* **three** `code` [link](http://x.y \"t\")\n  1. deep\n\n```py\nx = 1\n```\n> quote\n\n| a | b |\n|---|:-:|\n| 1 | 2 |\n\n![p](q) <b>x</b> &amp; \\* [r][1]\n\n[1]: <z>\n\nText\n====\n---\ntitle: x\n---\n[^n]: note\n\n    more [1]\n\n<div>\n<pre>\na\n",
    "html": "<!DOCTYPE html><html lang=ko><head><title>T</title><style>p{}</style><script>if(a<b){}</script></head><body><p class='x'>One <b>two</b> <i>three</i>.<br/>Four &amp; &lt; &#54620; <a href=\"?a=1&b=2\">five</a></p><pre> x </pre><!-- c --><ul><li>A<li>B</ul><img alt='a b'><textarea>t</textarea><![CDATA[x]]></body></html>",
    "srt": "1\r\n00:00:01,000 --> 00:00:02,500\r\n<i>Hello there.</i>\r\nHow are you?\r\n\r\n2\n00:00:03,000 --> 00:00:04,000 X1:1\n- One.\n- {\\an8}Two.\n",
    "vtt": "WEBVTT\n\nNOTE x\n\n1\n00:01.000 --> 00:00:02.500 align:start\n<v Al>One &amp; <c.a>two</c> <00:01.500>three</v>\r\n\r\n00:03.000 --> 00:04.000\n- <ruby>A<rt>b</rt></ruby>.\n- Two.\n",
    "tsv": "id\ttext\n1\tHello there. You!\n2\t\n\n3\t한국어 https://a.b\n",
}  # fmt: skip
NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
RUNS = (
    '<w:p><w:pPr><w:pStyle w:val="a"/></w:pPr><w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">Hello </w:t></w:r><w:r><w:t>there &amp; you.</w:t></w:r>'
    '<w:hyperlink r:id="r1"><w:r><w:t>link</w:t></w:r></w:hyperlink><w:bookmarkStart w:id="1" w:name="x"/><w:r><w:t>Two</w:t></w:r><w:bookmarkEnd w:id="1"/>'
    '<w:r><w:tab/><w:t>three</w:t><w:br/></w:r><w:r><w:footnoteReference w:id="2"/></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:proofErr/></w:p>'
    '<w:tbl><w:tr><w:tc><w:p><w:r><w:t>한국어 문장.</w:t></w:r></w:p></w:tc></w:tr></w:tbl><w:sdt><w:sdtPr/><w:sdtContent><w:p><w:r><w:t/></w:r></w:p></w:sdtContent></w:sdt>'
)  # fmt: skip


def _docx_seeds() -> list[Case]:
    def xml(root: str) -> str:
        return f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?><w:{root} xmlns:w="{NAMESPACE}" xmlns:r="urn:r"><w:body>{RUNS}</w:body></w:{root}>'

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("document", "header1", "footnotes"):
            archive.writestr(f"word/{name}.xml", xml(name.rstrip("1")))
        archive.writestr("[Content_Types].xml", "<Types/>")
    return [{"a.docx": out.getvalue()}]


def _aligned(texts: Sequence[str]) -> list[Translated]:
    """Words in reverse, with their alignment."""
    found = []
    for text in texts:
        words = text.split()
        links = [(i, len(words) - 1 - i) for i in range(len(words))]
        found.append(Translated(" ".join(words[::-1]), links))
    return found


def _read_document(folder: Path) -> None:
    (path,) = folder.iterdir()
    data, own = path.read_bytes(), {"column": 2} if path.suffix == ".tsv" else {}
    same, reversed_words = (partial(documents.translate, data, path.name, way, **own) for way in (list, _aligned))
    _one_of(folder, [same, reversed_words, partial(reversed_words, language="ko")])


def _one(name: str, data: bytes) -> Callable[[], list[Case]]:
    return lambda: [{own: content} for own, content in _packings(name, data).items()]


READERS: dict[str, Reader] = {
    "pairs": Reader(_pair_seeds, _read_pairs),
    "texts": Reader(lambda: [{name: data} for name, data in _packings("s", SOURCE).items()], _read_texts),
    "tables": Reader(_table_seeds, _read_table, ("text", "choices", "label", "A", "B", "1", "3"), refuses=True),
    "conll": Reader(_one("a.conll", CONLL), _read_conll, ("B-PER", "I-PER", "E-PER", "S-LOC", "L-X", "U-X", "O", "B-", "-", "I", "#", "\t", "1-2"), refuses=True),
    "squad": Reader(_one("a.json", json.dumps(SQUAD).encode()), _read_squad, ("data", "paragraphs", "context", "qas", "answers")),
    "vectors": Reader(_vector_seeds, _read_vectors, ("3 4\n", "4 3\n", "1.0 ", "cat", "\x80\x04", "PK\x03\x04"), refuses=True),
    "glossary": Reader(lambda: [{"g.tsv": TERMS}, {"g.json": b'{"cat": "dog", "a b": "c"}'}], _read_glossary),
    "recipe": Reader(_recipe_seeds, _read_recipe, refuses=True),
    "log": Reader(_log_seeds, _read_log, ("step", "valid", "kind", "loss")),
    "alignment": Reader(lambda: [{"a.align": b"0-0 1-2 2?3\n\n3p4 10-11\n"}], _read_alignment),
    "keys": Reader(lambda: [{"keys.txt": b"# keys\nabc 60 10000\ndef - 5\nghi # x\n"}], _read_keys),
    **{f"document-{kind}": Reader(lambda kind=kind: [{f"a.{kind}": DOCUMENTS[kind].encode()}, {f"a.{kind}": DOCUMENTS[kind].encode("utf-16")}], _read_document)
       for kind in DOCUMENTS},
    "document-docx": Reader(_docx_seeds, _read_document, ("word/document.xml", "word/header1.xml", "<w:p>", "</w:p>", "<w:r>", "</w:r>", "<w:t>", "</w:t>",
                                                         "<w:br/>", "<!DOCTYPE a>", "<w:ins>", "</w:ins>", "<w:drawing>", "<w:moveTo>")),
    "image-files": Reader(images.file_seeds, images.read_files),
    "image-sets": Reader(images.set_seeds, images.read_sets),
    "image-preprocessor": Reader(images.preprocessor_seeds, images.read_preprocessor, ("height", "width", "shortest_edge", "resample")),
    **folders.READERS,
    **sounds.READERS,
    **families.READERS,
    **media_folders.READERS,
}  # fmt: skip
