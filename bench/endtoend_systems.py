"""One system's whole way from a file to a file, in a process of its own: `python -m bench.endtoend_systems SYSTEM FOLDER IN OUT …`.

Each imports what it needs when it is asked: what that takes belongs to its time. Prints the seconds of the bulk itself.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

WARM = 256  # texts that the peers translate on a GPU before they are timed; Heed translates all


def ctranslate2(
    folder: Path, texts: list[str], beam: int, length: int, threads: int, device: str
) -> tuple[float, list[str]]:
    """As its documentation says is fastest on a CPU: int8, a worker for each core, batches by tokens, sorted by itself;
    on a GPU: float16, larger batches.
    """
    import ctranslate2 as engine
    import sentencepiece

    vocabulary = sentencepiece.SentencePieceProcessor(str(folder / "heed" / "subwords.spm"))
    several, cuda = len(texts) > 1, device == "cuda"
    model = engine.Translator(
        str(folder / "ctranslate2"), device=device, compute_type="float16" if cuda else "int8",
        inter_threads=threads if several and not cuda else 1, intra_threads=1 if several else threads,
    )  # fmt: skip

    def translate(texts: list[str]) -> list[str]:
        tokens = vocabulary.encode(texts, out_type=str)
        found = model.translate_batch(
            tokens, beam_size=beam, min_decoding_length=length, max_decoding_length=length,
            max_batch_size=16_384 if cuda else 1024, batch_type="tokens",
            suppress_sequences=[["<pad>"], ["<unk>"], ["<s>"]],
        )  # fmt: skip
        return [vocabulary.decode(own.hypotheses[0]) for own in found]

    return timed(translate, texts, cuda)


def timed(translate: Callable[[list[str]], list[str]], texts: list[str], cuda: bool) -> tuple[float, list[str]]:
    """The seconds of a translation and its texts; on a GPU, after a batch that loads its libraries and kernels."""
    if cuda and len(texts) > 1:
        translate(texts[:WARM])
    start = time.perf_counter()
    said = translate(texts)
    return time.perf_counter() - start, said


def transformers(
    folder: Path, texts: list[str], beam: int, length: int, threads: int, device: str
) -> tuple[float, list[str]]:
    """`generate` on batches of 32, sorted by length; on a GPU of 256, in bfloat16."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, GenerationConfig

    from bench.rows import FIRST, LAST, PAD, UNKNOWN

    torch.set_num_threads(threads)
    tokenizer = AutoTokenizer.from_pretrained(folder / "huggingface")
    cuda, size = device == "cuda", 256 if device == "cuda" else 32
    number = torch.bfloat16 if cuda else torch.float32
    model = AutoModelForSeq2SeqLM.from_pretrained(folder / "huggingface").eval().to(device, number)
    model.generation_config = GenerationConfig(
        num_beams=beam, min_new_tokens=length, max_new_tokens=length, do_sample=False, pad_token_id=PAD, eos_token_id=LAST,
        bad_words_ids=[[PAD], [UNKNOWN], [FIRST]], decoder_start_token_id=FIRST,
    )  # fmt: skip

    def translate(texts: list[str]) -> list[str]:
        said = [""] * len(texts)
        order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
        for at in range(0, len(order), size):
            rows = order[at : at + size]
            given = tokenizer([texts[row] for row in rows], padding=True, return_tensors="pt").to(device)
            with torch.inference_mode():
                found = tokenizer.batch_decode(model.generate(**given), skip_special_tokens=True)
            for row, text in zip(rows, found, strict=True):
                said[row] = text
        return said

    return timed(translate, texts, cuda)


def heed_python(
    folder: Path, texts: list[str], beam: int, length: int, threads: int, device: str
) -> tuple[float, list[str]]:
    """`model.translate` of a list."""
    model, search = _heed(folder, beam, length, threads, device)
    model.translate(texts if device == "cuda" else texts[:8], **search)  # opens what it needs; compiles all kernels
    start = time.perf_counter()
    said = [own.text for own in model.translate(texts, **search)]
    return time.perf_counter() - start, said


def heed_stages(*of) -> tuple[float, list[str]]:
    """The same with one stage after another, as before they overlapped."""
    from heed.products.translator import stages

    usual, stages.CHUNK = stages.CHUNK, sys.maxsize
    try:
        return heed_python(*of)
    finally:
        stages.CHUNK = usual


def heed_search(
    folder: Path, texts: list[str], beam: int, length: int, threads: int, device: str
) -> tuple[float, list[str]]:
    """The search alone: from subwords to subwords."""
    model, search = _heed(folder, beam, length, threads, device)
    config, ids = model.search_config(search), model.source.encode(texts)
    warm = ids if device == "cuda" else ids[:8]
    model.search_ids(warm, config, [[] for _ in warm])
    start = time.perf_counter()
    found = model.search_ids(ids, config, [[] for _ in ids])
    seconds = time.perf_counter() - start
    return seconds, [" ".join(model.target.decode(own[0].tokens).split()) for own in found]


def _heed(folder: Path, beam: int, length: int, threads: int, device: str):
    import torch

    import heed
    from heed.decoding.config import UNGUARDED

    torch.set_num_threads(threads)
    # drawn weights loop, and would be searched again
    return heed.load(folder / "heed", device), {"beam": beam, "min_length": length, "max_length": length, **UNGUARDED}


def import_torch(*of) -> tuple[float, list[str]]:
    import torch

    return 0.0, [torch.__version__]


SYSTEMS = {
    "import torch": import_torch,
    "ctranslate2": ctranslate2,
    "transformers": transformers,
    "heed, Python": heed_python,
    "heed, Python, without overlap": heed_stages,
    "heed, the search alone": heed_search,
}


def main(
    name: str, folder: str, source: str, out: str, beam: str, length: str, threads: str, device: str = "cpu"
) -> None:
    texts = Path(source).read_text("utf-8").splitlines()
    seconds, said = SYSTEMS[name](Path(folder), texts, int(beam), int(length), int(threads), device)
    Path(out).write_text("".join(f"{line}\n" for line in said), encoding="utf-8", newline="\n")
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
