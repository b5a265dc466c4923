// A translation as words that know each other. Places are counted in code points, as the service counts them.
export function wordsOf(text) {
  const words = [];
  let start = -1;
  const letters = Array.from(text);
  letters.forEach((letter, place) => {
    const space = /\s/.test(letter);
    if (!space && start < 0) start = place;
    if (space && start >= 0) { words.push({ start, end: place }); start = -1; }
  });
  if (start >= 0) words.push({ start, end: letters.length });
  for (const word of words) word.text = letters.slice(word.start, word.end).join("");
  return words;
}

const wordAt = (words, place) => words.findIndex((word) => word.start <= place && place < word.end);

// The probability of each word of a sentence: the product of its tokens; null where tokens and words do not match.
export function confidences(tokens, words) {
  const found = [];
  for (const { text, score } of tokens) {
    if (/^<.*>$/.test(text) && !text.startsWith("<0x")) continue;
    if (text.startsWith("\u2581") || !found.length) found.push(0);
    found[found.length - 1] += score;
  }
  return found.length === words.length ? found.map((score) => Math.exp(score)) : words.map(() => null);
}

// {source, target: words; sentenceOf, numberIn, sure by target word; pairs: [[source word, target word]]}
export function linked(sourceText, result) {
  const source = wordsOf(sourceText), target = wordsOf(result.text), pairs = [];
  for (const word of target) Object.assign(word, { sentence: -1, number: -1, sure: null, chosen: false });
  result.sentences.forEach((sentence, index) => {
    const own = target.filter((word) => word.start < sentence.target.end && word.end > sentence.target.start);
    const sure = confidences(sentence.tokens ?? [], own);
    const till = sentence.chosen ? sentence.chosen.word ?? own.length : -1; // what is chosen is not unsure
    own.forEach((word, number) => Object.assign(word, {
      sentence: index, number, sure: number <= till ? null : sure[number], chosen: number === till || (sentence.chosen?.word === null),
    }));
    for (const link of sentence.alignment ?? []) {
      const from = wordAt(source, link.source.start), to = wordAt(target, link.target.start);
      if (from >= 0 && to >= 0) pairs.push([from, to]);
    }
  });
  return { source, target, pairs };
}

export const moved = (place, by) => ({ ...place, start: place.start + by, end: place.end + by });

// The same result with another translation of one sentence; what stands behind it moves.
export function replaced(result, index, text, fresh) {
  const letters = Array.from(result.text), old = result.sentences[index];
  const whole = [...letters.slice(0, old.target.start), ...Array.from(text), ...letters.slice(old.target.end)].join("");
  const by = Array.from(text).length - (old.target.end - old.target.start);
  const sentences = result.sentences.map((sentence, number) => {
    if (number < index) return sentence;
    if (number > index) {
      const alignment = sentence.alignment.map((link) => ({ source: link.source, target: moved(link.target, by) }));
      return { ...sentence, target: moved(sentence.target, by), alignment };
    }
    const alignment = (fresh?.alignment ?? []).map((link) => ({
      source: moved(link.source, old.source.start), target: moved(link.target, old.target.start),
    }));
    const target = { text, start: old.target.start, end: old.target.end + by };
    return { ...sentence, target, alignment, tokens: fresh?.tokens ?? [], score: fresh?.score ?? null };
  });
  return { ...result, text: whole, sentences };
}
