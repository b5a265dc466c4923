"""Files that are meant to bring a parser down: bombs, deep nesting, and marks that are never closed."""

import io
import zipfile

from bench.parsers.docx_cases import DOCX, docx_file, packed, unpacked

MANY = 50_000


def hostile(kind: str) -> dict[str, bytes]:
    """Hostile files of a format, by what they do."""
    if kind == "docx":
        return _docx()
    texts = {"md": _markdown, "html": _html, "srt": _subtitles, "vtt": _subtitles}[kind]()
    head = "WEBVTT\n\n" if kind == "vtt" else ""
    return {
        name: (head + (text.replace(",000", ".000") if kind == "vtt" else text)).encode()
        for name, text in texts.items()
    }


def _markdown() -> dict[str, str]:
    return {
        "brackets opened": "[" * MANY + "words",
        "pictures opened": "![" * MANY + "words",
        "stars never closed": "*words " * MANY,
        "stars by turns": "**words *words " * (MANY // 2),
        "underscores by turns": "_words __words " * (MANY // 2),
        "backticks of all lengths": " ".join("`" * number + "words" for number in range(1, 400)),
        "comments never closed": "words <!-- " * MANY,
        "tags never closed": "words <a b='" * MANY,
        "quotations in each other": ">" * 5000 + " words\n",
        "lists in each other": "\n".join("  " * number + "- words" for number in range(1000)),
        "links in each other": "[" * 2000 + "words" + "](x)" * 2000,
        "a wide table": "|words" * 5000 + "|\n" + "|---" * 5000 + "|\n" + "|words" * 5000 + "|\n",
    }


def _html() -> dict[str, str]:
    return {
        "blocks in each other": "<div>" * MANY + "words" + "</div>" * MANY,
        "marks in each other": "<b>" * MANY + "words" + "</b>" * MANY,
        "lists never closed": "<ul><li>words" * MANY,
        "marks never closed": "<p><b><i>words" * MANY,
        "comments never closed": "words <!-- " * MANY,
        "tags never closed": "words <a b='" * MANY,
        "less-thans": "<" * (20 * MANY) + "words",
        "ampersands": "&" * (20 * MANY) + "words",
        "one tag of many attributes": "<p " + " ".join(f"a{number}=x" for number in range(MANY)) + ">words</p>",
        "scripts never closed": "words <script>" * MANY,
        "closing tags without opening ones": "words</b></p>" * MANY,
        "tables in each other": "<table><tr><td>words" * (MANY // 10),
    }


def _subtitles() -> dict[str, str]:
    cue = "00:00:01,000 --> 00:00:02,000\n"
    return {
        "a cue of a megabyte": cue + "words " * 170_000 + "\n\n",
        "a cue of many lines": cue + "words\n" * MANY + "\n",
        "many cues": f"{cue}words\n\n" * MANY,
        "times without text": cue * MANY,
        "less-thans": cue + "<" * (20 * MANY) + " words\n\n",
        "tags opened": cue + "<i>" * MANY + "words\n\n",
        "tags never closed": cue + "<i " * MANY + "words\n\n",
        "brackets of SSA": cue + "{\\" * MANY + "words\n\n",
        "a long number": "9" * (10 * MANY) + f"\n{cue}words\n\n",
        "long times": "9" * (10 * MANY) + ":00:01,000 --> 00:00:02,000\nwords\n\n",
        "only line ends": "\n" * (20 * MANY),
        "digits and colons": "1:" * (10 * MANY),
    }


def _docx() -> dict[str, bytes]:
    whole = unpacked(docx_file(DOCX["paragraph"]))
    xml = whole["word/document.xml"].decode()
    lol = '<!DOCTYPE w [<!ENTITY a "lol">' + "".join(
        f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    external = '<!DOCTYPE w [<!ENTITY i SYSTEM "file:///etc/hostname">'

    def with_xml(text: str) -> bytes:
        return packed(whole | {"word/document.xml": text.encode()})

    def with_dtd(dtd: str) -> bytes:
        return with_xml(xml.replace("<w:document", f"{dtd}]><w:document", 1).replace("one plain", "&i; words"))

    def nested(tag: str, times: int) -> bytes:
        body = f"<w:{tag}>" * times + "<w:p><w:r><w:t>words</w:t></w:r></w:p>" + f"</w:{tag}>" * times
        return with_xml(xml.replace("<w:body>", f"<w:body>{body}", 1))

    return {
        "a bomb of entities": with_dtd(lol),
        "an entity that names a file": with_dtd(external),
        "a bomb of zeros, 512 MB": _bomb(whole, "word/media/image1.png"),
        "a bomb of XML, 512 MB": _bomb(
            {name: own for name, own in whole.items() if name[5:] != "document.xml"}, "word/document.xml"
        ),
        "20,000 files": packed(whole | {f"word/x{number}": b"" for number in range(20_000)}),
        "elements in each other": nested("sdt", 20_000),
        "tables in each other": nested("tbl", 5_000),
        "runs in each other": nested("r", 20_000),
        "a paragraph of many runs": with_xml(
            xml.replace("</w:p>", "<w:r><w:t>words</w:t></w:r>" * 20_000 + "</w:p>", 1)
        ),
        "many paragraphs": with_xml(
            xml.replace("<w:body>", "<w:body>" + "<w:p><w:r><w:t>words</w:t></w:r></w:p>" * 20_000, 1)
        ),
        "cut in half": docx_file(DOCX["paragraph"])[:1000],
        "two files of one name": _doubled(whole),
    }


def _bomb(files: dict[str, bytes], name: str) -> bytes:
    out = io.BytesIO(packed(files))
    with (
        zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(name, "w", force_zip64=True) as file,
    ):
        for _ in range(512):
            file.write(bytes(1 << 20))
    return out.getvalue()


def _doubled(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO(packed(files | {"word/documenu.xml": files["word/document.xml"]}))
    return out.getvalue().replace(b"documenu", b"document")
