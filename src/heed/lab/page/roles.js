// What a head does in this sentence, as heed.lab.head_roles measured it. The page of `heed serve` uses this script too.
const ROLES = {
  previous: "previous token, {0}",
  next: "next token, {0}",
  same: "the token itself, {0}",
  start: "start of the text, {0}",
  end: "end of the sentence, {0}",
  aligned: "aligned word, {0}",
};

function roleOf(part, layer, head) {
  const { role, share } = look.roles?.[part]?.[layer]?.[head] ?? {};
  return role ? say(ROLES[role], percent(share)) : "";
}
