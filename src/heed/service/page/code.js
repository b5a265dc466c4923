// The request that was made, as one would write it oneself.
import { byId, copyText, toast } from "./dom.js";
import { t } from "./speech.js";

export function build() {
  for (const name of ["curl", "python"]) {
    byId(`copy-${name}`).addEventListener("click", async () => toast(t((await copyText(byId(name).textContent)) ? "copied" : "copyFailed")));
  }
}

const address = () => new URL("v1/translate", location.href.split("#")[0]).href;
const inQuotes = (text) => `'${text.replaceAll("'", "'\\''")}'`; // for a shell

// JSON is Python but for these three words, which are looked for outside of texts only.
const asPython = (json) => json.replace(/"(?:[^"\\]|\\.)*"|\btrue\b|\bfalse\b|\bnull\b/g, (part) => ({ true: "True", false: "False", null: "None" })[part] ?? part);

export function show(body) {
  const whole = { ...body, text: body.text || t("typeHere") };
  byId("curl").textContent = `curl ${address()} \\\n  -H 'Content-Type: application/json' \\\n  -d ${inQuotes(JSON.stringify(whole))}`;
  byId("python").textContent = [
    "import json, urllib.request", "",
    `body = ${asPython(JSON.stringify(whole, null, 4))}`,
    "request = urllib.request.Request(", `    ${JSON.stringify(address())},`, "    json.dumps(body).encode(),",
    '    {"Content-Type": "application/json"},', ")", "with urllib.request.urlopen(request) as answer:",
    '    print(json.load(answer)["translations"][0]["text"])',
  ].join("\n");
}
