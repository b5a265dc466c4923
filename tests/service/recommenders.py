"""Small recommenders; they know nothing, but recommend different things after different histories."""

from itertools import chain

import numpy as np
import torch

from heed.models.bert4rec import BERT4Rec, BERT4RecConfig
from heed.models.sasrec import SASRec, SASRecConfig
from heed.products.recommender import Recommender
from heed.vocabularies.histories import Histories
from heed.vocabularies.items import Items

ITEMS = ["tea", "green tea", "teapot", "Milk", "bread", "butter", "soap", "shampoo", "towel", "사과", "배", "사과 주스"]
USERS = {"ann": [0, 2, 3], "bob": [9, 10, 11, 4, 5, 6, 7, 8, 1], "new": [12]}  # 12 is an item that is not known
SIZES = {"items": len(ITEMS), "dim": 16, "heads": 2, "hidden": 16, "layers": 2, "max_length": 6}


def histories() -> Histories:
    lengths = [len(own) for own in USERS.values()]
    none = np.full(len(USERS), -1, np.int32)
    arrays = {
        "items": np.array([*chain(*USERS.values())], np.uint32),
        "offsets": np.concatenate([[0], np.cumsum(lengths)]),
        "train_end": np.array(lengths, np.int32),
        "valid_at": none,
        "test_at": none,
    }
    return Histories(list(USERS), len(ITEMS), arrays)


def recommender(kind: str = "sasrec", with_histories: bool = True) -> Recommender:
    torch.manual_seed(3)
    model = SASRec(SASRecConfig(**SIZES)) if kind == "sasrec" else BERT4Rec(BERT4RecConfig(**SIZES))
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return Recommender(model.eval(), Items(ITEMS), histories() if with_histories else None)
