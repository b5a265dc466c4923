"""The settings of a search: ours from Hugging Face's generation_config.json, and back.

Theirs count the token that a decoder is given first, ours do not; theirs count what a text begins with for the shortest
length, ours do not.
"""

from collections.abc import Mapping
from typing import Any

from heed.vocabularies.vocabulary import SpecialTokens

OURS = {
    "beam": 5, "nbest": 1, "length_penalty": 0.6, "penalty": "wu", "stopping": "exact", "min_length": 0,
    "max_length": None, "force_begin": True, "force_end": False, "no_repeat": 0, "renormalize": False, "sample": False,
    "temperature": 1.0, "top_k": 0, "top_p": 1.0,
}  # fmt: skip
THEIRS = {
    "num_beams": 1, "length_penalty": 1.0, "early_stopping": False, "min_length": 0, "min_new_tokens": None,
    "max_length": None, "max_new_tokens": None, "no_repeat_ngram_size": 0, "renormalize_logits": False,
    "do_sample": False, "temperature": 1.0, "top_k": 50, "top_p": 1.0, "bad_words_ids": None,
    "forced_bos_token_id": None, "forced_eos_token_id": None,
}  # fmt: skip
# what changes what a search finds and heed's has not, by the value at which it changes nothing
WITHOUT = {
    "num_beam_groups": 1, "diversity_penalty": 0.0, "force_words_ids": None, "constraints": None,
    "repetition_penalty": 1.0, "encoder_repetition_penalty": 1.0, "encoder_no_repeat_ngram_size": 0,
    "exponential_decay_length_penalty": None, "suppress_tokens": None, "begin_suppress_tokens": None,
    "sequence_bias": None, "guidance_scale": 1.0, "penalty_alpha": None, "dola_layers": None, "watermarking_config": None,
    "stop_strings": None, "max_time": None, "token_healing": False,
}  # fmt: skip
WITHOUT_DRAWING = {"typical_p": 1.0, "min_p": None, "top_h": None, "epsilon_cutoff": 0.0, "eta_cutoff": 0.0}
# what tells how `generate` computes, and what it hands back besides the text: not what it finds
IDLE = {
    "output_attentions", "output_hidden_states", "output_scores", "output_logits", "return_dict_in_generate", "use_cache",
    "cache_implementation", "cache_config", "max_cache_len", "return_legacy_cache", "prefill_chunk_size", "low_memory",
    "compile_config", "disable_compile", "continuous_batching_config", "remove_invalid_values", "is_assistant",
    "num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold", "assistant_early_exit",
    "assistant_lookbehind", "assistant_ensemble_weight", "target_lookbehind", "prompt_lookup_num_tokens",
    "max_matching_ngram_size", "speculation_type", "use_mtp", "generation_kwargs", "transformers_version",
    "_from_model_config", "_commit_hash",
}  # fmt: skip
IDS = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")
STOPPING = {"first": True, "heuristic": False, "exact": "never"}


def to_ours(said: Mapping[str, Any], marks: SpecialTokens) -> tuple[dict[str, Any], list[str]]:
    """Settings of a DecodingConfig, and the names of those that are left aside; what cannot be followed is refused."""
    said = {name: value for name, value in said.items() if value is not None}
    theirs = {**THEIRS, **said}
    _refuse(said, theirs["do_sample"])
    ours = {
        "beam": theirs["num_beams"],
        "length_penalty": float(theirs["length_penalty"]),
        "penalty": "length",
        "stopping": _stopping(theirs["early_stopping"]),
        "min_length": max(0, _shortest(theirs) - len(marks.before)),
        "no_repeat": theirs["no_repeat_ngram_size"],
        "renormalize": theirs["renormalize_logits"],
        "force_end": _forced("forced_eos_token_id", theirs, marks.last),
    }
    if marks.before:
        ours["force_begin"] = _forced("forced_bos_token_id", theirs, marks.before[0])
    elif theirs["forced_bos_token_id"] is not None:
        raise ValueError(
            f"forced_bos_token_id is {theirs['forced_bos_token_id']}, but a text of this vocabulary begins with no mark: "
            "heed can force none there"
        )
    if (most := _longest(theirs)) is not None:
        ours["max_length"] = most
    if theirs["do_sample"]:
        ours |= {"sample": True, **{name: theirs[name] for name in ("temperature", "top_k", "top_p")}}
    return ours, _left(said, marks)


def to_theirs(decoding: Mapping[str, Any], marks: SpecialTokens, most: int) -> dict[str, Any]:
    """What a generation_config.json says, of a model that has no more than `most` positions."""
    ours = {**OURS, **decoding}
    said = {
        "num_beams": ours["beam"],
        "length_penalty": ours["length_penalty"],
        "early_stopping": STOPPING[ours["stopping"]],
        "max_length": min(most, (ours["max_length"] or most) + 1),
        "min_length": ours["min_length"] + len(marks.before) + 1 if ours["min_length"] else 0,
        "no_repeat_ngram_size": ours["no_repeat"],
        "renormalize_logits": ours["renormalize"],
        "bad_words_ids": [[token] for token in marks.never] or None,
        "forced_bos_token_id": marks.before[0] if marks.before and ours["force_begin"] else None,
        "forced_eos_token_id": marks.last if ours["force_end"] else None,
    }
    if ours["sample"]:
        said |= {"num_beams": 1, "do_sample": True, **{name: ours[name] for name in ("temperature", "top_k", "top_p")}}
    if ours["nbest"] > 1:
        said["num_return_sequences"] = ours["nbest"]
    return {name: value for name, value in said.items() if value is not None} | ids(marks)


def ids(marks: SpecialTokens) -> dict[str, Any]:
    """The tokens with a meaning of their own, as config.json and generation_config.json name them."""
    begins = marks.before[0] if marks.before else None if marks.first in (marks.pad, marks.last) else marks.first
    return {
        "pad_token_id": marks.pad,
        "bos_token_id": begins,
        "eos_token_id": marks.last,
        "decoder_start_token_id": marks.first,
    }


def check_ids(said: Mapping[str, Any], marks: SpecialTokens) -> None:
    """A model and its vocabulary must mean the same by an id."""
    for name, own in (("pad", marks.pad), ("eos", marks.last), ("decoder_start", marks.first)):
        value = said.get(f"{name}_token_id")
        if value not in (None, own, [own]):
            raise ValueError(f"{name}_token_id is {value}, but in this vocabulary it is {own}: they do not go together")


def _refuse(said: Mapping[str, Any], drawn: bool) -> None:
    for name, neutral in {**WITHOUT, **(WITHOUT_DRAWING if drawn else {})}.items():
        value = said.get(name, neutral)
        if value != neutral and value not in ([], {}):
            without = f"take it out, or set it to {neutral}" if neutral is not None else "take it out"
            raise ValueError(f"{name} is {value}, which heed's search has not: {without}")
    if drawn and said.get("num_beams", 1) > 1:
        raise ValueError(f"do_sample is true and num_beams {said['num_beams']}: heed's search draws, or has beams")
    if said.get("length_penalty", 0) < 0:
        raise ValueError(f"length_penalty is {said['length_penalty']}; heed's must not be negative")


def _stopping(value: Any) -> str:
    for ours, theirs in STOPPING.items():
        if value is theirs or value == theirs:
            return ours
    raise ValueError(f"early_stopping is {value!r}; it is true, false or 'never'")


def _shortest(theirs: Mapping[str, Any]) -> int:
    asked = theirs["min_new_tokens"]
    return theirs["min_length"] - 1 if asked is None else asked


def _longest(theirs: Mapping[str, Any]) -> int | None:
    """Unless said, as heed does: their 20 tokens are for trying things out."""
    if theirs["max_new_tokens"] is not None:
        return theirs["max_new_tokens"]
    return None if theirs["max_length"] is None else max(1, theirs["max_length"] - 1)


def _forced(name: str, theirs: Mapping[str, Any], own: int) -> bool:
    value = theirs[name]
    if value not in (None, own, [own]):
        raise ValueError(f"{name} is {value}; heed can force {own} there, and no other")
    return value is not None


def _left(said: Mapping[str, Any], marks: SpecialTokens) -> list[str]:
    """What heed does not do, or in its own way: what its marks ban is banned, and nothing else."""
    known = {*THEIRS, *WITHOUT, *WITHOUT_DRAWING, *IDLE, *IDS}
    left = {name for name, value in said.items() if name not in known and (name, value) != ("num_return_sequences", 1)}
    banned, own = {tuple(words) for words in said.get("bad_words_ids", ())}, {(i,) for i in marks.never}
    if more := banned - own - {(marks.unknown,)}:
        raise ValueError(
            f"bad_words_ids bans {sorted(map(list, more))}; heed's search can ban {list(marks.never)} here"
        )
    if banned and banned != own:
        left.add("bad_words_ids")
    return sorted(left)
