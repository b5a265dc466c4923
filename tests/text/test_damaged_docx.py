"""Word documents that are damaged, or not written as Word writes them: a one-line error says so."""

import io
import random
import zipfile

import pytest

from heed.text.documents import translate

COMPRESSIONS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def xml(text: str, encoding: str = "UTF-8") -> bytes:
    head = f'<?xml version="1.0" encoding="{encoding}"?>'
    return f'{head}<w:document xmlns:w="{NAMESPACE}"><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:document>'.encode(
        "latin-1" if encoding == "ISO-8859-1" else "utf-8"
    )


def packed(content: bytes, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        archive.writestr("word/document.xml", content)
    return out.getvalue()


def same(texts):
    return list(texts)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_whatever_bytes_are_wrong_the_error_is_one_sentence(compression):
    """Each compression method raises its own exceptions; a file that can still be read is translated."""
    whole = packed(xml("one two three. " * 20), compression)
    chance = random.Random(compression)
    refused = set()
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 2, 8))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            translate(bytes(data), "a.docx", same)
        except ValueError as error:
            refused.add(type(error))
            assert str(error).startswith("a.docx") and "\n" not in str(error) and "()" not in str(error)
    assert refused == {ValueError}  # and no subclass, which would not name the file


@pytest.mark.parametrize("compression", COMPRESSIONS[1:])
def test_a_part_that_cannot_be_unpacked_is_an_error(compression):
    whole = bytearray(packed(xml("one two three. " * 20), compression))
    start = 30 + len("word/document.xml")
    whole[start : start + 40] = b"\xff" * 40
    with pytest.raises(ValueError, match=r"a\.docx is not a Word document, or is damaged \(.+\)"):
        translate(bytes(whole), "a.docx", same)


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "US-ASCII", "windows-1252", "EUC-KR", "none such"])
@pytest.mark.parametrize("text", ["plain", "caf\xe9"])
def test_a_part_in_another_encoding_is_an_error(encoding, text):
    with pytest.raises(ValueError) as refused:
        translate(packed(xml(text, encoding)), "a.docx", same)
    message = str(refused.value)
    if encoding != "none such":  # which is no name
        assert message == f"a.docx: word/document.xml is written in {encoding}; heed reads what Word writes, UTF-8"
    assert type(refused.value) is ValueError and message.startswith("a.docx: word/document.xml is ")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_byte_order_mark_is_an_error(encoding):
    content = f'<w:document xmlns:w="{NAMESPACE}"><w:p/></w:document>'.encode(encoding)
    with pytest.raises(ValueError, match="is written in UTF-16; heed reads what Word writes, UTF-8"):
        translate(packed(content), "a.docx", same)


@pytest.mark.parametrize("encoding", ["UTF-8", "utf-8"])
def test_what_word_writes_is_read(encoding):
    data = packed(xml("caf\xe9", encoding))
    with zipfile.ZipFile(io.BytesIO(translate(data, "a.docx", same))) as archive:
        assert archive.read("word/document.xml") == xml("caf\xe9", encoding)
