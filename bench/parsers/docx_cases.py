"""Constructs of Word documents: the XML of word/document.xml, or of other parts by their names."""

import io
import zipfile

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_OTHERS = (
    f'xmlns:r="{_R}" xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" xmlns:v="urn:schemas-microsoft-com:vml"'
    ' xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"'
    ' xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml" xmlns:x="urn:unknown" mc:Ignorable="w14 x"'
)
_SECTION = (
    '<w:sectPr><w:headerReference w:type="default" r:id="rId1"/><w:footerReference w:type="default" r:id="rId2"/>'
    '<w:pgSz w:w="11906" w:h="16838"/></w:sectPr>'
)
_KINDS = {
    "header1": "header",
    "footer1": "footer",
    "footnotes": "footnotes",
    "endnotes": "endnotes",
    "comments": "comments",
}
_ROOTS = {"header1": "hdr", "footer1": "ftr", "footnotes": "footnotes", "endnotes": "endnotes", "comments": "comments"}
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\r\n'
_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.{}+xml"


def _run(text: str, properties: str = "") -> str:
    return f"<w:r>{properties}<w:t>{text}</w:t></w:r>"


def _p(*runs: str) -> str:
    return f"<w:p>{''.join(runs)}</w:p>"


def _body(*content: str) -> dict[str, str]:
    return {"document": "".join(content)}


_SPACED = '<w:r><w:t xml:space="preserve">{}</w:t></w:r>'
_ONE, _TWO = _run("⟦one⟧"), _run("⟦two⟧")
_BOX = f"<w:txbxContent>{_p(_run('⟦in a box⟧'))}</w:txbxContent>"

DOCX = {
    "paragraph": _body(_p(_run("⟦one plain paragraph.⟧"))),
    "two paragraphs": _body(_p(_ONE), _p(_TWO)),
    "bold run": _body(_p(_SPACED.format("⟦this is⟧ "), _run("⟦bold⟧", "<w:rPr><w:b/></w:rPr>"))),
    "style and numbering": _body(
        f'<w:p><w:pPr><w:pStyle w:val="Heading1"/><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr>{_ONE}</w:p>'
    ),
    "hyperlink": _body(_p(_SPACED.format("⟦see⟧ "), f'<w:hyperlink r:id="rId9">{_run("⟦the page⟧")}</w:hyperlink>')),
    "table": _body(f"<w:tbl><w:tr><w:tc>{_p(_ONE)}</w:tc><w:tc>{_p(_TWO)}</w:tc></w:tr></w:tbl>"),
    "table in a table": _body(
        f"<w:tbl><w:tr><w:tc><w:tbl><w:tr><w:tc>{_p(_ONE)}</w:tc></w:tr></w:tbl>{_p(_TWO)}</w:tc></w:tr></w:tbl>"
    ),
    "header and footer": {
        "document": _p(_ONE),
        "header1": _p(_run("⟦the header⟧")),
        "footer1": _p(_run("⟦the footer⟧")),
    },
    "footnote": {
        "document": _p(_ONE, '<w:r><w:footnoteReference w:id="2"/></w:r>'),
        "footnotes": f'<w:footnote w:id="2">{_p(_run("⟦the note⟧"))}</w:footnote>',
    },
    "endnote": {
        "document": _p(_ONE, '<w:r><w:endnoteReference w:id="2"/></w:r>'),
        "endnotes": f'<w:endnote w:id="2">{_p(_run("⟦the note⟧"))}</w:endnote>',
    },
    "comment, not translated": {
        "document": _p('<w:commentRangeStart w:id="0"/>', _ONE, '<w:commentRangeEnd w:id="0"/>'),
        "comments": f'<w:comment w:id="0" w:author="x">{_p(_run("a remark"))}</w:comment>',
    },
    "text box": _body(_p(f"<w:r><w:pict><v:shape><v:textbox>{_BOX}</v:textbox></v:shape></w:pict></w:r>")),
    "alternate content": _body(
        _p(
            f'<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing>{_BOX}</w:drawing></mc:Choice>'
            f"<mc:Fallback><w:pict>{_BOX}</w:pict></mc:Fallback></mc:AlternateContent></w:r>"
        )
    ),
    "content control of a block": _body(
        f'<w:sdt><w:sdtPr><w:tag w:val="x"/></w:sdtPr><w:sdtContent>{_p(_ONE)}</w:sdtContent></w:sdt>'
    ),
    "content control in a line": _body(_p(f"<w:sdt><w:sdtPr/><w:sdtContent>{_ONE}</w:sdtContent></w:sdt>")),
    "smart tag": _body(_p(f'<w:smartTag w:element="place">{_ONE}</w:smartTag>')),
    "inserted text": _body(_p(f'<w:ins w:id="1" w:author="x">{_ONE}</w:ins>')),
    "deleted text, not translated": _body(
        _p(f'<w:del w:id="1" w:author="x"><w:r><w:delText>gone</w:delText></w:r></w:del>{_ONE}')
    ),
    "moved text": _body(
        _p(f'<w:moveFrom w:id="1">{_run("not translated")}</w:moveFrom>'), _p(f'<w:moveTo w:id="2">{_ONE}</w:moveTo>')
    ),
    "simple field": _body(_p(f'<w:fldSimple w:instr=" REF x ">{_ONE}</w:fldSimple>')),
    "field with its instruction": _body(
        _p(
            '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> TOC not translated </w:instrText></w:r>',
            f'<w:r><w:fldChar w:fldCharType="separate"/></w:r>{_ONE}<w:r><w:fldChar w:fldCharType="end"/></w:r>',
        )
    ),
    "tab in a run": _body(_p("<w:r><w:t>⟦one⟧</w:t><w:tab/><w:t>⟦two⟧</w:t></w:r>")),
    "line break in a run": _body(_p("<w:r><w:t>⟦one⟧</w:t><w:br/><w:t>⟦two⟧</w:t></w:r>")),
    "picture with a description, not translated": _body(
        _p(
            _ONE,
            '<w:r><w:drawing><wp:inline><wp:docPr id="1" name="a" descr="a picture"/></wp:inline></w:drawing></w:r>',
        )
    ),
    "formula, not translated": _body(_p(_ONE, "<m:oMath><m:r><m:t>x</m:t></m:r></m:oMath>")),
    "bookmark": _body(_p('<w:bookmarkStart w:id="0" w:name="here"/>', _ONE, '<w:bookmarkEnd w:id="0"/>')),
    "spelling marks": _body(_p('<w:proofErr w:type="spellStart"/>', _ONE, '<w:proofErr w:type="spellEnd"/>')),
    "entity": _body(_p(_run("⟦salt⟧ &amp; ⟦pepper⟧"))),
    "numbered entity": _body(_p(_run("⟦one⟧ &#8212; ⟦two⟧"))),
    "CDATA": _body(_p(_run("<![CDATA[⟦one⟧]]>")), _p(_TWO)),
    "spaces kept": _body(_p('<w:r><w:t xml:space="preserve">  ⟦one⟧  </w:t></w:r>')),
    "unknown extension": _body(f'<w:p w14:paraId="1A2B" x:own="y">{_ONE}<x:thing>not translated</x:thing></w:p>'),
    "comment of XML": _body("<!-- not translated -->", _p(_ONE)),
    "attributes in single quotes": _body(f"<w:p w14:paraId='1A2B'>{_ONE}</w:p>"),
    "processing instruction": _body("<?mso keep?>", _p(_ONE)),
    "parts that nobody knows": {"document": _p(_ONE), "customXml/item1.xml": "<x  a='1'  />"},
    "strict namespace": {"document": _p(_ONE), "strict": ""},
}


def docx_file(parts: dict[str, str]) -> bytes:
    """A .docx with these parts, which Word and python-docx open."""
    namespace = STRICT if "strict" in parts else W
    own = {name: text for name, text in parts.items() if name in _ROOTS}
    own.setdefault("header1", _p(_run("1")))
    own.setdefault("footer1", _p(_run("1")))
    types = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{_TYPE.format(kind)}"/>'
        for name, kind in {"document": "document.main", **{name: _KINDS[name] for name in own}}.items()
    )
    rels = "".join(
        f'<Relationship Id="{number}" Type="{_R}/{_KINDS[name]}" Target="{name}.xml"/>'
        for name, number in {
            **{name: f"rId{i}" for i, name in enumerate(own, 20)},
            "header1": "rId1",
            "footer1": "rId2",
        }.items()
    )
    rels += f'<Relationship Id="rId9" Type="{_R}/hyperlink" Target="https://example.org" TargetMode="External"/>'
    package = "http://schemas.openxmlformats.org/package/2006"
    files = {
        "[Content_Types].xml": f'{_HEAD}<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType='
        '"application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>'
        f"{types}</Types>",
        "_rels/.rels": f'{_HEAD}<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" Type="{_R}/officeDocument" '
        'Target="word/document.xml"/></Relationships>',
        "word/_rels/document.xml.rels": f'{_HEAD}<Relationships xmlns="{package}/relationships">{rels}</Relationships>',
        "word/document.xml": f'{_HEAD}<w:document xmlns:w="{namespace}" {_OTHERS}><w:body>{parts["document"]}{_SECTION}</w:body></w:document>',
    }
    for name, text in own.items():
        files[f"word/{name}.xml"] = (
            f'{_HEAD}<w:{_ROOTS[name]} xmlns:w="{namespace}" {_OTHERS}>{text}</w:{_ROOTS[name]}>'
        )
    files |= {name: text for name, text in parts.items() if "/" in name}
    return packed({name: text.encode() for name, text in files.items()})


def packed(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def unpacked(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
