// Whole files: choose or drop one, and take its translation home.
import * as api from "./api.js";
import { byId, element, percent } from "./dom.js";
import * as glossary from "./glossary.js";
import { number, t } from "./speech.js";

let known = null, file = null, languages = () => ({}), asking = null;
const MEGA = 1024 * 1024, EVERY = 400; // milliseconds

export function build(pair) {
  languages = pair;
  const drop = byId("drop");
  byId("file").addEventListener("change", () => choose(byId("file").files[0]));
  byId("file-go").addEventListener("click", go);
  for (const name of ["dragover", "dragenter"]) drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
  for (const name of ["dragleave", "drop"]) drop.addEventListener(name, () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => { event.preventDefault(); choose(event.dataTransfer.files[0]); });
}

export function ready(models) {
  known = models;
  byId("file").accept = known.files.join(",");
  respeak();
  if (!file) choose(byId("file").files[0]);
}

export function respeak() {
  byId("file-kinds").textContent = t("fileKinds", known.files.join(" "), number(known.limits.bytes / MEGA));
}

function say(...nodes) {
  byId("file-state").replaceChildren(...nodes);
}

function choose(chosen) {
  if (!chosen || !known) return;
  asking?.abort();
  file = null;
  byId("file-go").disabled = true;
  byId("file-go").classList.add("strong");
  const kind = `.${chosen.name.split(".").pop().toLowerCase()}`;
  const wrong = (text) => say(element("p", { class: "error" }, text));
  if (!known.files.includes(kind)) return wrong(t("fileWrongKind", chosen.name, known.files.join(" ")));
  if (chosen.size > known.limits.bytes) {
    return wrong(t("fileTooLong", chosen.name, number(chosen.size / MEGA, 1), number(known.limits.bytes / MEGA)));
  }
  file = chosen;
  byId("file-go").disabled = false;
  say(element("p", {}, t("fileChosen", file.name, number(file.size / 1024, 1))));
}

async function go() {
  const mine = (asking = new AbortController()), { name } = file;
  byId("file-go").disabled = true;
  const job = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const bar = element("div", { class: "progress steady", role: "progressbar", "aria-label": t("translating") }), count = element("p", { id: "file-count", class: "muted small" });
  say(element("p", {}, t("fileWorking", name)), bar, count);
  follow(job, mine, bar, count);
  try {
    const { glossary: terms, keep } = glossary.fields();
    const more = { ...(terms && { glossary: Object.entries(terms).map((pair) => pair.join("\t")).join("\n") }), ...(keep && { keep: keep.join("\n") }) };
    const answer = await api.translateFile(file, { ...languages(), ...more, job }, mine.signal);
    const address = new URL(answer.translatedFileUrl, location.href);
    const here = new URL(address.pathname + address.search, location.origin); // behind a proxy the service may not know its own name
    say(element("a", { href: here.href, download: "", class: "download quiet strong" }, t("fileDone", name)));
    byId("file-go").classList.remove("strong"); // what is next is to take it home
  } catch (error) {
    if (error.name !== "AbortError") say(element("p", { class: "error" }, error.message));
  }
  mine.over = true;
  byId("file-go").disabled = !file;
}

// How much the service has translated, asked now and then until the file is there.
async function follow(job, mine, bar, count) {
  while (!mine.over && !mine.signal.aborted) {
    try {
      const { done, total } = await api.fileProgress(job, mine.signal);
      if (total && !mine.over) {
        const share = done / total;
        bar.classList.toggle("measured", share < 1);
        bar.style.setProperty("--share", share);
        bar.setAttribute("aria-valuenow", Math.round(100 * share));
        count.textContent = t(share < 1 ? "fileParts" : "fileWriting", number(done), number(total), percent(share));
      }
    } catch {
      // what is asked for tells more
    }
    await new Promise((next) => setTimeout(next, EVERY));
  }
}
