"""heed serve"""

import argparse
import gc
import logging
import sys
from collections.abc import Callable
from pathlib import Path

EXAMPLES = """\
examples:
  heed serve runs/ko-en runs/en-de --port 8000       # a web page at http://127.0.0.1:8000 and a LibreTranslate-compatible API
  heed serve                                         # the demo model (make demo)
  heed serve runs/ko-en --runs runs                  # the page shows training runs live
  heed serve en-de=runs/mine                         # a folder that does not specify its languages
  heed serve facebook/m2m100_418M                    # every direction; prefix ko-en= for just one
  heed serve runs/gpt2                               # a language model: OpenAI-compatible /v1/completions, and a page to write with it
  heed serve runs/bert runs/names                    # encoders: fill masks, tag words; answer, classify, embed
  heed serve embed=runs/bert                         # choose the task of a model that can do several
  heed serve runs/voice --vocoder hifigan            # a voice: OpenAI-compatible /v1/audio/speech
  heed serve runs/sasrec                             # a recommender: /v1/recommend, and a page to pick items
  heed serve runs/a,runs/b --api-keys keys.txt       # an ensemble, for clients with a key

  curl http://127.0.0.1:8000/translate -d q="나는 학생이에요." -d source=auto -d target=en

By default it is reachable from this machine only; see --host. docs/reference/serving.md describes the API.
"""
DEMO = Path("runs/demo")
OPEN_FILES = 64  # of the service itself: libraries, the event loop, processes that read documents


def add(parser: argparse.ArgumentParser) -> None:
    from heed.cli.common import add_device, add_engine
    from heed.cli.speak import add_g2p, add_vocoder

    option = parser.add_argument
    option(
        "folder",
        nargs="*",
        help="models of any kind: runs, model folders or names on the hub; a,b is an ensemble of translation models",
    )
    option("--host", default="127.0.0.1", help="the address to listen on; 0.0.0.0: all interfaces")
    option("--port", type=int, default=8000, help="0: any free port")
    option("--runs", type=Path, metavar="DIR", help="a folder of runs to show on the page")
    option("--api-keys", type=Path, metavar="FILE", help="a file of API keys: requests without a key are refused")
    option("--cors", action="append", metavar="ORIGIN", help="an origin whose pages may call the API; *: any")
    option(
        "--allowed-host",
        action="append",
        metavar="NAME",
        help="a host name clients may use, besides localhost and this machine's addresses; *: any",
    )
    option(
        "--trust-proxy",
        nargs="?",
        const="127.0.0.1,::1",
        metavar="ADDRESSES",
        help="trust X-Forwarded-For and -Proto from proxies at these addresses or networks, separated by commas; with no value, from this machine (default: ignore these headers)",
    )
    voices = parser.add_argument_group("voices")
    add_vocoder(voices)
    add_g2p(voices)
    _add_batches(parser.add_argument_group("batches").add_argument)
    _add_limits(parser.add_argument_group("limits").add_argument)
    option("--log-texts", action="store_true", help="log the beginning of each text (by default texts are not logged)")
    add_device(parser)
    add_engine(parser)


def _add_batches(option: Callable[..., argparse.Action]) -> None:
    option(
        "--wait-ms", type=float, default=3.0, help="how long a sentence waits for others to batch with, in milliseconds"
    )
    option("--batch-tokens", type=int, default=1024, help="maximum number of subwords in a batch")
    option("--batch-sentences", type=int, default=64, help="maximum number of sentences in a batch")


def _add_limits(option: Callable[..., argparse.Action]) -> None:
    option(
        "--queue", type=int, default=64, metavar="N", help="maximum number of concurrent requests; others are refused"
    )
    option("--max-characters", type=int, default=100_000, metavar="N", help="maximum characters per request")
    option("--max-texts", type=int, default=500, metavar="N", help="maximum number of texts per request")
    option("--max-body", type=int, default=10 << 20, metavar="BYTES", help="maximum size of a request body")
    option("--timeout", type=float, default=60.0, metavar="SECONDS", help="time allowed for one request")
    option("--max-header", type=int, default=64 << 10, metavar="BYTES", help="maximum size of request headers")
    option("--header-timeout", type=float, default=10.0, metavar="SECONDS", help="time allowed for the request headers")
    option("--idle-timeout", type=float, default=30.0, metavar="SECONDS", help="how long an idle connection stays open")
    option("--max-connections", type=int, default=1024, metavar="N", help="maximum number of open connections")
    option("--client-connections", type=int, default=256, metavar="N", help="maximum number of connections per client")
    option(
        "--client-requests", type=int, metavar="N", help="maximum requests per client and minute (default: unlimited)"
    )
    option(
        "--client-characters",
        type=int,
        metavar="N",
        help="maximum characters per client and minute (default: unlimited)",
    )


def run(args: argparse.Namespace) -> int:
    from heed.cli.common import errors

    if not args.folder and not DEMO.is_dir():
        raise ValueError(
            f"no model given, and there is no {DEMO}: create it with `make demo`, or train one with heed train"
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
        f"{service.listing}\nhttp://{host}:{port}   (press Ctrl-C to stop)",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )
    sys.setswitchinterval(0.0002)  # so that the event loop does not wait long for the threads
    gc.collect()
    gc.freeze()  # models and libraries stay: scanning them again would stop all threads for a tenth of a second
    server.run([socket])
    return 0


def _equip(args: argparse.Namespace, voices: list) -> None:
    """Give each voice the vocoder and the pronunciation model."""
    from heed.cli.speak import equip

    given = [name for name in ("vocoder", "g2p") if getattr(args, name)]
    if given and not voices:
        raise ValueError(f"--{given[0]} is for voices, and no model given is one: leave it out")
    for voice in voices:
        equip(voice, args)


def _allow_open_files(requests: int) -> None:
    """Raise the open-file limit to what the service needs, or raise an error: the event loop would abort."""
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
            f"this process may open only {hard} files, and {requests} concurrent requests need {needed}: raise the "
            "limit (ulimit -n), or "
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
    from heed.service.http.voices import ServedVoice

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
    _equip(args, [model.product for model in models if isinstance(model, ServedVoice)])
    for model in models:
        model.warm_up(*([args.batch_sentences] if isinstance(model, ServedModel) else []))
    service = Service(models, settings, keys)
    service.warm()
    return service
