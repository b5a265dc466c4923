// What a person chose instead of the model's words. A choice belongs to its sentence, and stays while that is unchanged.
import { replaced } from "./links.js";

let chosen = new Map(); // by sentence: {text, word, fresh}
let before = []; // what was chosen before each choice, to undo it

const keyOf = (result, sentence) => JSON.stringify([result.source, result.target, sentence.source.text]);

// `word` is the number of the chosen word in the sentence; without one, the whole sentence was chosen.
export function add(result, index, text, word = null) {
  before.push(chosen);
  chosen = new Map(chosen).set(keyOf(result, result.sentences[index]), { text, word, fresh: null });
}

// What the model says of a choice: its scores and links, or null if it was undone or changed meanwhile.
export function learn(result, index, text, fresh) {
  const key = keyOf(result, result.sentences[index]), own = chosen.get(key);
  if (own?.text !== text) return false;
  chosen = new Map(chosen).set(key, { ...own, fresh });
  return true;
}

// An answer of the service with the choices for its sentences.
export function applied(answer) {
  return answer.sentences.reduce((result, sentence, index) => {
    const own = chosen.get(keyOf(answer, sentence));
    if (!own) return result;
    const made = replaced(result, index, own.text, own.fresh);
    made.sentences[index] = { ...made.sentences[index], chosen: { word: own.word } };
    return made;
  }, answer);
}

export const any = (result) => Boolean(result?.sentences.some((sentence) => sentence.chosen));

export function undo() {
  chosen = before.pop() ?? new Map();
}

// The model's own words again, for all sentences of a result; this can be undone, too.
export function reset(result) {
  before.push(chosen);
  chosen = new Map(chosen);
  for (const sentence of result.sentences) chosen.delete(keyOf(result, sentence));
}

export const canUndo = () => before.length > 0;
