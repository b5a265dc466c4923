"""heed serve"""

import argparse
import gc
import logging
import sys
from pathlib import Path

EXAMPLES = """\
examples:
  heed serve runs/ko-en runs/en-de --port 8000       # a page at http://127.0.0.1:8000, an API for LibreTranslate's clients
  heed serve                                         # the model of make demo
  heed serve runs/ko-en --runs runs                  # the page shows runs as they train
  heed serve en-de=runs/mine                         # a folder that does not name its languages
  heed serve facebook/m2m100_418M                    # every direction; with ko-en= before it, one
  heed serve runs/gpt2                               # a language model: OpenAI's /v1/completions, and a page to write on
  heed serve runs/bert runs/names                    # models that read: masks filled, words tagged; answer, classify, embed
  heed serve embed=runs/bert                         # what is asked of a model that can do several things
  heed serve runs/sasrec                             # a recommender: /v1/recommend, and a page to pick items on
  heed serve runs/a,runs/b --api-keys keys.txt       # an ensemble, for clients with a key

  curl http://127.0.0.1:8000/translate -d q="나는 학생이에요." -d source=auto -d target=en

By default it can be reached from this machine only; see --host. docs/reference/serving.md describes the API.
"""
DEMO = Path("runs/demo")
OPEN_FILES = 64  # of the service itself: libraries, the event loop, processes that read documents


def add(parser: argparse.ArgumentParser) -> None:
    from heed.cli.common import add_device, add_engine

    option = parser.add_argument
    option(
        "folder",
        nargs="*",
        help="models of any kind: runs, model folders or names on the hub; a,b is an ensemble of translators",
    )
    option("--host", default="127.0.0.1", help="the address to listen on; 0.0.0.0: all addresses")
    option("--port", type=int, default=8000, help="0: any free port")
    option("--runs", type=Path, metavar="DIR", help="a folder of runs that the page shows")
    option("--api-keys", type=Path, metavar="FILE", help="a file of keys: requests without one are refused")
    option("--cors", action="append", metavar="ORIGIN", help="a site whose pages may read the answers; *: all sites")
    option(
        "--allowed-host",
        action="append",
        metavar="NAME",
        help="a name under which clients may ask, besides localhost and addresses of this machine; *: any",
    )
    option(
        "--trust-proxy",
        nargs="?",
        const="127.0.0.1,::1",
        metavar="ADDRESSES",
        help="believe X-Forwarded-For and -Proto of a proxy at these addresses or networks, with commas between them; without "
        "any, of one on this machine (default: they are ignored)",
    )
    batches = parser.add_argument_group("batches")
    batches.add_argument("--wait-ms", type=float, default=3.0, help="milliseconds that a sentence waits for others")
    batches.add_argument("--batch-tokens", type=int, default=1024, help="maximum number of subwords in a batch")
    batches.add_argument("--batch-sentences", type=int, default=64, help="maximum number of sentences in a batch")
    limits = parser.add_argument_group("limits")
    limits.add_argument("--queue", type=int, default=64, metavar="N", help="concurrent requests; more are refused")
    limits.add_argument("--max-characters", type=int, default=100_000, metavar="N", help="of one request")
    limits.add_argument("--max-texts", type=int, default=500, metavar="N", help="of one request")
    limits.add_argument("--max-body", type=int, default=10 << 20, metavar="BYTES", help="of one request")
    limits.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="for one request")
    limits.add_argument(
        "--max-header", type=int, default=64 << 10, metavar="BYTES", help="of the headers of one request"
    )
    limits.add_argument("--header-timeout", type=float, default=10.0, metavar="SECONDS", help="for headers to arrive")
    limits.add_argument("--idle-timeout", type=float, default=30.0, metavar="SECONDS", help="between requests")
    limits.add_argument("--max-connections", type=int, default=1024, metavar="N", help="of all clients")
    limits.add_argument("--client-connections", type=int, default=256, metavar="N", help="of one client")
    limits.add_argument(
        "--client-requests", type=int, metavar="N", help="of one client in a minute (default: any number)"
    )
    limits.add_argument(
        "--client-characters", type=int, metavar="N", help="of one client in a minute (default: any number)"
    )
    option("--log-texts", action="store_true", help="log the beginning of each text (default: no texts are logged)")
    add_device(parser)
    add_engine(parser)


def run(args: argparse.Namespace) -> int:
    from heed.cli.common import errors

    if not args.folder and not DEMO.is_dir():
        raise ValueError(
            f"no model was named, and there is no {DEMO}: make it with `make demo`, or train one with heed train"
        )
    if args.runs is not None and not args.runs.is_dir():
        raise ValueError(f"{args.runs}: no such folder of runs")
    _allow_open_files(args.queue)
    from heed.service.http.app import create_app
    from heed.service.http.server import Server, bind_socket

    logging.basicConfig(format="heed: %(message)s", level=logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    service = _service(args, args.folder or [str(DEMO)])
    server, socket = Server(create_app(service), service), bind_socket(args.host, args.port)
    host, port = socket.getsockname()[:2]
    host = f"[{host}]" if ":" in host else host
    errors().print(
        f"{service.listing}\nhttp://{host}:{port}   (Ctrl-C ends it)",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )
    sys.setswitchinterval(0.0002)  # so that the event loop does not wait long for the threads
    gc.collect()
    gc.freeze()  # models and libraries stay: scanning them again would stop all threads for a tenth of a second
    server.run([socket])
    return 0


def _allow_open_files(requests: int) -> None:
    """Raise the limit of open files to what the service needs; where that is not allowed, say so: the event loop would abort."""
    try:
        import resource
    except ImportError:  # Windows
        return
    needed = OPEN_FILES + requests
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise ValueError(
            f"only {hard} files may be open here, and {requests} concurrent requests need {needed}: raise the limit (ulimit -n), or "
            "lower --queue"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _service(args: argparse.Namespace, folders: list[str]):
    import torch

    from heed.service.http.connections import ConnectionLimits
    from heed.service.http.limits import Limits, read_keys
    from heed.service.http.models import ServedModel
    from heed.service.http.opening import open_models
    from heed.service.http.service import Service, Settings

    if args.threads:
        torch.set_num_threads(args.threads)
    for name in ("batch_tokens", "batch_sentences"):
        if getattr(args, name) < 1:
            raise ValueError(f"--{name.replace('_', '-')} is {getattr(args, name)}; it must be at least 1")
    limits = Limits(
        characters=args.max_characters, texts=args.max_texts, bytes=args.max_body, seconds=args.timeout, requests=args.queue,
        waiting=max(1_000_000, 4 * args.max_characters), client_requests=args.client_requests, client_characters=args.client_characters,
    )  # fmt: skip
    connections = ConnectionLimits(
        header_bytes=args.max_header, header_seconds=args.header_timeout, idle_seconds=args.idle_timeout,
        connections=args.max_connections, client_connections=args.client_connections,
    )  # fmt: skip
    settings = Settings(
        max_wait=max(0.0, args.wait_ms / 1000), batch_tokens=args.batch_tokens, batch_sentences=args.batch_sentences, cors=tuple(args.cors or ()),
        trusted_proxies=tuple(filter(None, (args.trust_proxy or "").replace(" ", "").split(","))), runs=args.runs, log_texts=args.log_texts, allowed_hosts=(args.host, *(args.allowed_host or ())), limits=limits, connections=connections,
    )  # fmt: skip
    keys = read_keys(args.api_keys) if args.api_keys else None
    models = open_models(folders, args.device, args.engine)
    for model in models:
        model.warm_up(*([args.batch_sentences] if isinstance(model, ServedModel) else []))
    service = Service(models, settings, keys)
    service.warm()
    return service
