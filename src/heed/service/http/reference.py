"""/docs: the OpenAPI document as a page without scripts or external resources."""

import json
from html import escape
from typing import Any

HEAD = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Heed's API</title><link rel="stylesheet" href="/docs.css"><main><h1>Heed's API</h1>
<p>OpenAPI document: <a href="/openapi.json">openapi.json</a>. Web page: <a href="/">/</a>. Every error is
<code>{"error": "one sentence"}</code>, or on OpenAI's paths <code>{"error": {"message": "one sentence"}}</code>.</p>"""
STYLE = """@font-face{font-family:"Heed glyphs";src:url("/assets/korean.ttf") format("truetype");unicode-range:U+1100-11FF,U+3130-318F,U+AC00-D7FF}
:root{color-scheme:light dark}body{font:16px/1.5 system-ui,"Segoe UI",Arial,"Heed glyphs",sans-serif;margin:2rem}main{max-width:60rem;margin:auto}
section{border-top:1px solid #8885;padding:1rem 0}h2{font-size:1.1rem;font-family:ui-monospace,monospace}
h2 b{display:inline-block;min-width:4rem}table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2rem .8rem .2rem 0;
vertical-align:top;border-bottom:1px solid #8883}pre{overflow:auto;padding:.6rem;background:#8881;border-radius:.3rem}
code{font-family:ui-monospace,Menlo,Consolas,"Liberation Mono","Heed glyphs",monospace}"""


def render(document: dict[str, Any]) -> str:
    """All endpoints with their fields and examples."""
    parts = [HEAD]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parts.append(_section(path, method, operation))
    return "".join([*parts, "</main>"])


def _section(path: str, method: str, operation: dict[str, Any]) -> str:
    text = f"<section><h2><b>{escape(method.upper())}</b> {escape(path)}</h2><p>{escape(operation.get('description', ''))}</p>"
    content = operation.get("requestBody", {}).get("content", {})
    rows = [(p["name"], p["schema"], p.get("required", False)) for p in operation.get("parameters", [])]
    if content:
        schema = next(iter(content.values()))["schema"]
        rows += [
            (name, field, name in schema.get("required", ())) for name, field in schema.get("properties", {}).items()
        ]
        text += f"<p>A body of {escape(' or '.join(content))}:</p>"
    if rows:
        text += "<table><tr><th>field<th>what<th>default</tr>" + "".join(map(_row, rows)) + "</table>"
    if content and "example" in schema:
        text += f"<p>For example:</p><pre><code>{escape(json.dumps(schema['example'], ensure_ascii=False, indent=1))}</code></pre>"
    answer = next(iter(operation["responses"].get("200", {}).get("content", {}).values()), {}).get("schema", {})
    if "example" in answer:
        text += f"<p>Answers</p><pre><code>{escape(json.dumps(answer['example'], ensure_ascii=False, indent=1))}</code></pre>"
    return text + "</section>"


def _row(row: tuple[str, dict[str, Any], bool]) -> str:
    name, schema, required = row
    kinds = [own.get("type", "") for own in schema.get("anyOf", [schema])]
    what = " or ".join(dict.fromkeys(kind for kind in kinds if kind and kind != "null"))
    what += f": {schema['description']}" if "description" in schema else ""
    default = "needed" if required else json.dumps(schema.get("default"), ensure_ascii=False)
    return f"<tr><td><code>{escape(name)}</code><td>{escape(what)}<td>{escape(default)}</tr>"
