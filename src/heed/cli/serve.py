"""heed serve"""

import argparse
import sys
from pathlib import Path

EXAMPLES = """\
examples:
  heed serve runs/ko-en runs/en-de --port 8000       # a page at http://127.0.0.1:8000, an API for LibreTranslate's clients
  heed serve                                         # the model of make demo
  heed serve runs/ko-en --runs runs                  # the page shows runs as they train
  heed serve en-de=runs/mine                         # a model that does not know its languages
  heed serve runs/a,runs/b --api-keys keys.txt       # an ensemble, for those who have a key

  curl http://127.0.0.1:8000/translate -d q="나는 학생이에요." -d source=auto -d target=en

It listens on this machine alone unless --host says otherwise. docs/serving.md tells what can be asked.
"""
DEMO = Path("runs/demo")


def add(parser: argparse.ArgumentParser) -> None:
    from heed.cli.common import add_device, add_engine

    parser.add_argument("folder", nargs="*", help="runs, model folders or names on the hub; a,b is an ensemble")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on; 0.0.0.0 is every one")
    parser.add_argument("--port", type=int, default=8000, help="0 is any that is free")
    parser.add_argument("--runs", type=Path, metavar="DIR", help="a folder of runs that can be watched")
    parser.add_argument("--api-keys", type=Path, metavar="FILE", help="a key a line: only who has one is answered")
    parser.add_argument(
        "--cors", action="append", metavar="ORIGIN", help="a site whose pages may read answers; * for all"
    )
    batches = parser.add_argument_group("batches")
    batches.add_argument("--wait-ms", type=float, default=3.0, help="how long a sentence waits for others")
    batches.add_argument("--batch-tokens", type=int, default=1024, help="most subwords in a batch")
    batches.add_argument("--batch-sentences", type=int, default=64, help="most sentences in a batch; 1 is no batches")
    limits = parser.add_argument_group("limits")
    limits.add_argument("--queue", type=int, default=64, metavar="N", help="requests in work at once; more are refused")
    limits.add_argument("--max-characters", type=int, default=100_000, metavar="N", help="of one request")
    limits.add_argument("--max-texts", type=int, default=500, metavar="N", help="of one request")
    limits.add_argument("--max-body", type=int, default=10 << 20, metavar="BYTES", help="of one request")
    limits.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="for one request")
    parser.add_argument(
        "--log-texts", action="store_true", help="log the beginning of each text (they are not, unless asked)"
    )
    add_device(parser)
    add_engine(parser, "auto", "who searches: CTranslate2 where it can (on the CPU), or always torch (docs/speed.md)")


def run(args: argparse.Namespace) -> int:
    import gc
    import logging

    from heed.cli.common import errors

    folders = args.folder or [str(_demo())]
    if args.runs is not None and not args.runs.is_dir():
        raise ValueError(f"{args.runs}: no such folder of runs")
    from heed.service.http.app import create_app
    from heed.service.http.server import Server, bind_socket

    logging.basicConfig(format="heed: %(message)s", level=logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    service = _service(args, folders)
    server, found = Server(create_app(service), service), bind_socket(args.host, args.port)
    host, port = found.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    ways = ", ".join(f"{source} to {target}" for source, target in service.catalogue.pairs)
    errors().print(f"{ways}\nhttp://{shown}:{port}   (Ctrl-C ends it)", highlight=False, soft_wrap=True, markup=False)
    sys.setswitchinterval(0.0002)  # so that the event loop soon has its turn among the threads
    gc.collect()
    gc.freeze()  # models and libraries stay: to look through them again would stop everyone for a tenth of a second
    server.run([found])
    return 0


def _service(args: argparse.Namespace, folders: list[str]):
    import torch

    from heed.service.http.limits import Limits, read_keys
    from heed.service.http.models import open_models
    from heed.service.http.service import Service, Settings

    if args.threads:
        torch.set_num_threads(args.threads)
    for name in ("batch_tokens", "batch_sentences"):
        if getattr(args, name) < 1:
            raise ValueError(f"--{name.replace('_', '-')} is {getattr(args, name)}; it must be at least 1")
    limits = Limits(
        characters=args.max_characters, texts=args.max_texts, bytes=args.max_body, seconds=args.timeout, requests=args.queue,
        waiting=max(1_000_000, 4 * args.max_characters),
    )  # fmt: skip
    settings = Settings(
        max_wait=max(0.0, args.wait_ms / 1000), batch_tokens=args.batch_tokens, batch_sentences=args.batch_sentences, cors=tuple(args.cors or ()),
        runs=args.runs, log_texts=args.log_texts, limits=limits,
    )  # fmt: skip
    keys = read_keys(args.api_keys) if args.api_keys else None
    models = open_models(folders, args.device, args.engine)
    for model in models:
        model.translator.translate(".")  # whatever is made at the first time is made now
    service = Service(models, settings, keys)
    service.warm()
    return service


def _demo() -> Path:
    if not DEMO.is_dir():
        raise ValueError(
            f"no model was named, and there is no {DEMO}: make it with `make demo`, or train one with heed train"
        )
    return DEMO
