// A long text is translated in parts, cut at its blank lines, so that the first are there soon and progress can be shown.
import * as api from "./api.js";
import { moved } from "./links.js";

const LONG = 2000, PART = 1000; // characters: longer texts are cut, into parts of about so many

export function split(text) {
  if (text.length <= LONG) return [text];
  const parts = [""];
  for (const paragraph of text.split(/(?<=\n[^\S\n]*\n)(?=[^\n])/)) {
    if (parts.at(-1).trim() && parts.at(-1).length + paragraph.length > PART) parts.push("");
    parts[parts.length - 1] += paragraph;
  }
  return parts;
}

// The translation so far, with the seconds that it took, and the share of the text that is done.
export async function* translate(body, signal) {
  const parts = split(body.text), found = [];
  let seconds = 0, done = 0;
  for (const text of parts) {
    const source = found[0]?.source ?? body.source; // all parts are in the language of the first
    const answer = await api.translate({ ...body, text, source }, signal);
    found.push({ ...answer.translations[0], given: text });
    seconds += answer.seconds;
    done += text.length;
    yield { translation: joined(found), seconds, share: done / body.text.length };
  }
}

function joined(found) {
  if (found.length === 1) return found[0];
  const whole = { ...found[0], text: "", score: 0, sentences: [] };
  let source = 0, target = 0; // where the next part begins
  for (const { given, text, score, sentences } of found) {
    whole.sentences.push(...sentences.map((one) => ({
      ...one, source: moved(one.source, source), target: moved(one.target, target),
      alignment: one.alignment.map((link) => ({ source: moved(link.source, source), target: moved(link.target, target) })),
    })));
    whole.text += text;
    whole.score = score === null || whole.score === null ? null : whole.score + score;
    source += Array.from(given).length;
    target += Array.from(text).length;
  }
  return whole;
}
