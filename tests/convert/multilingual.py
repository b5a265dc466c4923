"""Small folders of mBART-50, M2M-100 and NLLB, as transformers writes them, with trained vocabularies."""

import json
from functools import cache

import torch
import transformers
from sentencepiece import SentencePieceNormalizer
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from torch import nn

from heed.convert import tokenizers
from heed.vocabularies import files, m2m100, mbart50, nllb
from heed.vocabularies.files import CONFIG, TOKENIZER, File
from tests.data.mixed import training

NLLB_CODES = ("ace_Latn", "deu_Latn", "eng_Latn", "fra_Latn", "kor_Hang", "zho_Hans", "zho_Hant")
CODES = {"mbart50": ("ko_KR", "en_XX"), "m2m100": ("ko", "en"), "nllb": ("kor_Hang", "eng_Latn")}
ENDS = {"mbart50": 8.0, "m2m100": 4.2, "nllb": 1.7}  # so that sentences have different lengths
CLASSES = {"mbart50": "MBart", "m2m100": "M2M100", "nllb": "M2M100"}
SHAPE = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64, "attn_implementation": "eager",
    "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2, "scale_embedding": True,
}  # fmt: skip


@cache
def vocabularies(kind, size=700):
    if kind == "nllb":
        return (nllb.NllbVocabulary(nllb_files(size)),) * 2
    return {"mbart50": mbart50, "m2m100": m2m100}[kind].learn(training(), size)


def nllb_files(size=700, codes=NLLB_CODES, **settings):
    """A tokenizer.json with BPE as SentencePiece has it, and the languages as added tokens."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    charsmap = files.charsmap(SentencePieceNormalizer(rule_name="nmt_nfkc").serialized_model_proto())
    steps = [normalizers.Precompiled(charsmap), normalizers.Replace(Regex(" {2,}"), " ")]
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False, limit_alphabet=120)
    tokenizer.train_from_iterator(training(), trainer)
    tokenizer.add_special_tokens([*codes, AddedToken("<mask>", lstrip=True, normalized=True, special=True)])
    config = {"tokenizer_class": "NllbTokenizer", "extra_special_tokens": list(codes), **settings}
    contents = {TOKENIZER: tokenizer.to_str(), CONFIG: json.dumps(config)}
    return {name: File(name, content.encode()) for name, content in contents.items()}


def saved(kind, folder, ends=1.0, **settings):
    """Their model with weights from N(0, 0.2), saved with its tokenizer; `ends` makes the end token likelier."""
    name = CLASSES[kind]
    config = getattr(transformers, f"{name}Config")(vocab_size=len(vocabularies(kind)[1]) + 5, **{**SHAPE, **settings})
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}ForConditionalGeneration")(config).eval().requires_grad_(False)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.2)
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            nn.init.ones_(module.weight)
    for layer in model.model.decoder.layers:  # so that sentences differ
        for part in (layer.self_attn.out_proj, layer.encoder_attn.out_proj, layer.fc2):
            part.weight *= 4
    direction = model.model.decoder.layer_norm.bias
    model.model.shared.weight[2] += ends * direction / direction.norm()
    model.save_pretrained(folder)
    tokenizers.write(vocabularies(kind), folder, SHAPE["max_position_embeddings"])
    return model
