"""What one writes in ten minutes: FastAPI around `generate` of transformers. `python -m bench.serving_plain FOLDER PORT THREADS`."""

import sys

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

folder, port, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(threads)
tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
app = FastAPI()


class Asked(BaseModel):
    q: str
    source: str = ""
    target: str = ""


@app.post("/translate")
def translate(asked: Asked) -> dict[str, str]:
    """In a thread of FastAPI's pool, one request by itself; beams and lengths are those of the folder."""
    with torch.inference_mode():
        said = model.generate(**tokenizer([asked.q], return_tensors="pt"))
    return {"translatedText": tokenizer.decode(said[0], skip_special_tokens=True)}


@app.get("/health")
def health() -> dict[str, str]:
    return {"status": "ok"}


uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
