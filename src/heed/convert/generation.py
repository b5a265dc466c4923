"""Search settings: Heed's from generation_config.json, and the reverse. Their lengths count the decoder's start
token, Heed's do not. Their minimum length also counts the tokens that every text begins with, Heed's does not.
"""

from collections.abc import Mapping
from typing import Any

from heed.config import WORDS
from heed.vocabularies.vocabulary import SpecialTokens

OUR_DEFAULTS = {
    "beam": 5, "nbest": 1, "length_penalty": 0.6, "penalty": "wu", "stopping": "exact", "min_length": 0,
    "max_length": None, "force_begin": True, "force_end": False, "no_repeat": 0, "renormalize": False, "sample": False,
    "temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "typical_p": 1.0, "repetition_penalty": 1.0,
}  # fmt: skip
THEIR_DEFAULTS = {
    "num_beams": 1, "length_penalty": 1.0, "early_stopping": False, "min_length": 0, "min_new_tokens": None,
    "max_length": None, "max_new_tokens": None, "no_repeat_ngram_size": 0, "renormalize_logits": False,
    "do_sample": False, "temperature": 1.0, "top_k": 50, "top_p": 1.0, "min_p": 0.0, "typical_p": 1.0,
    "repetition_penalty": 1.0, "bad_words_ids": None,
    "forced_bos_token_id": None, "forced_eos_token_id": None,
}  # fmt: skip
# settings that change the output and that heed does not have, with the value that has no effect
UNSUPPORTED = {
    "num_beam_groups": 1, "diversity_penalty": 0.0, "force_words_ids": None, "constraints": None,
    "encoder_repetition_penalty": 1.0, "encoder_no_repeat_ngram_size": 0,
    "exponential_decay_length_penalty": None, "suppress_tokens": None, "begin_suppress_tokens": None,
    "sequence_bias": None, "guidance_scale": 1.0, "penalty_alpha": None, "dola_layers": None, "watermarking_config": None,
    "stop_strings": None, "max_time": None, "token_healing": False,
}  # fmt: skip
UNSUPPORTED_SAMPLING = {"top_h": None, "epsilon_cutoff": 0.0, "eta_cutoff": 0.0}
# how `generate` computes, and what it returns besides the text: nothing that changes the output
NO_EFFECT = {
    "output_attentions", "output_hidden_states", "output_scores", "output_logits", "return_dict_in_generate", "use_cache",
    "cache_implementation", "cache_config", "max_cache_len", "return_legacy_cache", "prefill_chunk_size", "low_memory",
    "compile_config", "disable_compile", "continuous_batching_config", "remove_invalid_values", "is_assistant",
    "num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold", "assistant_early_exit",
    "assistant_lookbehind", "assistant_ensemble_weight", "target_lookbehind", "prompt_lookup_num_tokens",
    "max_matching_ngram_size", "speculation_type", "use_mtp", "generation_kwargs", "transformers_version",
    "_from_model_config", "_commit_hash",
}  # fmt: skip
# Off, so that a model says what it said there.
GUARDS = {"avoid_loops": False, "avoid_overlong": False, "avoid_copies": False}
TYPES = {
    int: ("num_beams", "min_length", "min_new_tokens", "max_length", "max_new_tokens", "no_repeat_ngram_size", "top_k"),
    float: ("length_penalty", "temperature", "top_p", "min_p", "typical_p", "repetition_penalty"),
    bool: ("do_sample", "renormalize_logits"),
}
SAMPLING = ("temperature", "top_k", "top_p", "min_p", "typical_p")
BEAMS = ("length_penalty", "early_stopping")
IDS = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")
STOPPING = {"first": True, "heuristic": False, "exact": "never"}


def to_ours(given: Mapping[str, Any], special: SpecialTokens) -> tuple[dict[str, Any], list[str]]:
    """Settings of a DecodingConfig, and the names of ignored ones. Unsupported settings that change the output are
    refused.
    """
    given = {name: value for name, value in given.items() if value is not None}
    _check_types(given)
    theirs = {**THEIR_DEFAULTS, **given}
    _refuse_unsupported(given, theirs["do_sample"])
    min_length = theirs["min_length"] - 1 if theirs["min_new_tokens"] is None else theirs["min_new_tokens"]
    ours = {
        "beam": theirs["num_beams"],
        "length_penalty": float(theirs["length_penalty"]),
        "penalty": "length",
        "stopping": _stopping(theirs["early_stopping"]),
        "min_length": max(0, min_length - len(special.before)),
        "no_repeat": theirs["no_repeat_ngram_size"],
        "renormalize": theirs["renormalize_logits"],
        "force_end": _forced("forced_eos_token_id", theirs, special.last),
        **GUARDS,
    }
    _check_repetition_penalty(theirs["repetition_penalty"], theirs["num_beams"])
    if theirs["repetition_penalty"] != 1:
        ours["repetition_penalty"] = float(theirs["repetition_penalty"])
    if special.before:
        ours["force_begin"] = _forced("forced_bos_token_id", theirs, special.before[0])
    elif theirs["forced_bos_token_id"] is not None:
        raise ValueError(
            f"forced_bos_token_id is {theirs['forced_bos_token_id']}, but texts in this vocabulary do not begin with a "
            "special token, so heed cannot force one there"
        )
    if (max_length := _max_length(theirs)) is not None:
        ours["max_length"] = max_length
    if theirs["do_sample"]:
        ours |= {"sample": True, **{name: theirs[name] for name in SAMPLING}}
    return ours, _ignored(given, special)


def _check_types(given: Mapping[str, Any]) -> None:
    for kind, names in TYPES.items():
        for name in names:
            value = given.get(name, kind())
            if type(value) is not kind and not (kind is float and type(value) is int):
                raise ValueError(f"{name} is {value!r}; it must be {WORDS[kind]}")
    banned = given.get("bad_words_ids", [])
    if not isinstance(banned, list) or not all(
        isinstance(own, list) and all(type(i) is int for i in own) for own in banned
    ):
        raise ValueError(f"bad_words_ids is {banned!r}; it must be a list of lists of ids")


def of_model(task: str, facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """The search settings of a model. A language model trained with Heed samples by default, as heed generate does."""
    own = facts.get("decoding", {})
    return {"beam": 1, "sample": True} if task == "language" and ("trained" in facts or not own) else own


def to_theirs(decoding: Mapping[str, Any], special: SpecialTokens, max_length: int) -> dict[str, Any]:
    """The generation_config.json of a model with `max_length` positions."""
    ours = {**OUR_DEFAULTS, **decoding}
    theirs = {
        "num_beams": ours["beam"],
        "length_penalty": ours["length_penalty"],
        "early_stopping": STOPPING[ours["stopping"]],
        "max_length": min(max_length, (ours["max_length"] or max_length) + 1),
        "min_length": ours["min_length"] + len(special.before) + 1 if ours["min_length"] else 0,
        "no_repeat_ngram_size": ours["no_repeat"],
        "renormalize_logits": ours["renormalize"],
        "bad_words_ids": [[token] for token in special.never] or None,
        "forced_bos_token_id": special.before[0] if special.before and ours["force_begin"] else None,
        "forced_eos_token_id": special.last if ours["force_end"] else None,
        "repetition_penalty": ours["repetition_penalty"] if ours["repetition_penalty"] != 1 else None,
    }
    if ours["sample"]:
        theirs |= {"num_beams": 1, "do_sample": True, **{name: ours[name] for name in SAMPLING}}
        theirs |= dict.fromkeys(BEAMS)  # transformers saves no settings that have no effect
    _check_repetition_penalty(ours["repetition_penalty"], theirs["num_beams"])
    if ours["nbest"] > 1:
        theirs["num_return_sequences"] = ours["nbest"]
    return {name: value for name, value in theirs.items() if value is not None} | ids(special)


def ids(special: SpecialTokens) -> dict[str, Any]:
    """The special tokens as named in config.json and generation_config.json."""
    first = None if special.first in (special.pad, special.last) else special.first
    begins = special.before[0] if special.before else first
    return dict(zip(IDS, (special.pad, begins, special.last, special.first), strict=True))


def check_ids(settings: Mapping[str, Any], special: SpecialTokens) -> None:
    """Refuse special tokens with other ids than in the vocabulary."""
    for name, expected in ids(special).items():
        value = settings.get(name)
        if name != "bos_token_id" and value not in (None, expected, [expected]):
            raise ValueError(f"{name} is {value}, but in this vocabulary it is {expected}: they do not match")


def _refuse_unsupported(given: Mapping[str, Any], sample: bool) -> None:
    for name, neutral in {**UNSUPPORTED, **(UNSUPPORTED_SAMPLING if sample else {})}.items():
        value = given.get(name, neutral)
        if value != neutral and value not in ([], {}):
            remedy = f"take it out, or set it to {neutral}" if neutral is not None else "take it out"
            raise ValueError(f"{name} is {value}, which heed's search does not support: {remedy}")
    if sample and given.get("num_beams", 1) > 1:
        raise ValueError(f"do_sample is true and num_beams {given['num_beams']}: heed can either sample or use a beam")
    if given.get("length_penalty", 0) < 0:
        raise ValueError(f"length_penalty is {given['length_penalty']}; it must not be negative in heed")


def _check_repetition_penalty(penalty: float, beams: int) -> None:
    if penalty != 1 and beams > 1:
        raise ValueError(
            f"the repetition penalty is {penalty} and there are {beams} beams: transformers then penalizes log "
            "probabilities, heed logits; set the penalty or the number of beams to 1"
        )


def _stopping(value: Any) -> str:
    for ours, theirs in STOPPING.items():
        if value is theirs or value == theirs:
            return ours
    raise ValueError(f"early_stopping is {value!r}; it must be true, false or 'never'")


def _max_length(theirs: Mapping[str, Any]) -> int | None:
    """None is Heed's default: theirs, 20 tokens, is only meant for first trials."""
    if theirs["max_new_tokens"] is not None:
        return theirs["max_new_tokens"]
    return None if theirs["max_length"] is None else max(1, theirs["max_length"] - 1)


def _forced(name: str, theirs: Mapping[str, Any], token: int) -> bool:
    value = theirs[name]
    if value not in (None, token, [token]):
        raise ValueError(f"{name} is {value}; heed can force only {token} there")
    return value is not None


def _ignored(given: Mapping[str, Any], special: SpecialTokens) -> list[str]:
    """The settings that heed does not follow. It bans the tokens its special tokens specify, and no others."""
    known = {*THEIR_DEFAULTS, *UNSUPPORTED, *UNSUPPORTED_SAMPLING, *NO_EFFECT, *IDS}
    rest = {name: value for name, value in given.items() if name not in known}
    ignored = {name for name, value in rest.items() if (name, value) != ("num_return_sequences", 1)}
    banned, ours = {tuple(words) for words in given.get("bad_words_ids", ())}, {(i,) for i in special.never}
    if new := banned - ours - {(special.unknown,)}:
        raise ValueError(f"bad_words_ids bans {sorted(map(list, new))}; heed can ban {list(special.never)} here")
    if banned and banned != ours:
        ignored.add("bad_words_ids")
    return sorted(ignored)
