# make demo, make road, make docs, make test: each does all its own set-up. See CONTRIBUTING.md.

PYTHON ?= python3
VENV := .venv
TOOLS := $(VENV)/tools
CLUSTERS := $(VENV)/clusters
HEED := $(VENV)/bin/heed
DEMO := runs/demo
ROAD := runs/road
WORKERS ?= 2

.PHONY: demo road notes docs setup-docs test check-all check-mutants check-faults check-lowest check-clusters check-soak lint lock wheel setup setup-tests system browser espeak clean check-fuzz

demo: setup
	@echo; echo "── training a Korean-English translator on the built-in phrasebook ──"
	$(HEED) phrasebook --out $(DEMO)-data --train 60000
	$(HEED) train recipes/phrasebook.toml --out $(DEMO) --resume
	@echo; echo "── scoring 500 sentences it has never seen ──"
	$(HEED) evaluate $(DEMO) --source $(DEMO)-data/test.ko --reference $(DEMO)-data/test.en --gold $(DEMO)-data/test.align --sentences $(DEMO)/sentences.html
	@echo; echo "── translating ──"
	$(HEED) translate $(DEMO) --align "투빅아, 나는 너를 많이 사랑해."
	@echo; echo "── drawing what it looked at ──"
	$(HEED) look $(DEMO) "투빅아, 나는 너를 많이 사랑해." --out $(DEMO)/attention.png
	$(HEED) look $(DEMO) "투빅아, 나는 너를 많이 사랑해." --out $(DEMO)/attention.html
	$(HEED) plot $(DEMO) --out $(DEMO)/curves.png
	@echo; echo "The picture: $(DEMO)/attention.png     The page: $(DEMO)/attention.html     The sentences: $(DEMO)/sentences.html"
	@echo "Your turn:   $(HEED) translate $(DEMO) \"나는 책을 읽어요.\""
	@echo "In a page:   $(HEED) serve --runs runs        (then open http://127.0.0.1:8000)"

# The way of the lecture notes: one fixed vector, additive attention, the Transformer. What is trained already is not trained again.
ROAD_DATA := --source $(ROAD)/data/train.ko --target $(ROAD)/data/train.en --valid-source $(ROAD)/data/valid.ko --valid-target $(ROAD)/data/valid.en
SENTENCE := "투빅아, 나는 너를 많이 사랑해."

road: setup
	@echo; echo "── writing lines of one to four sentences of the built-in phrasebook ──"
	$(HEED) phrasebook --grammar --out $(ROAD)/data --train 20000 --join 4
	@echo; echo "── 1 of 3: an RNN that hands over one fixed vector ──"
	$(HEED) train recipes/road-recurrent.toml $(ROAD_DATA) --out $(ROAD)/fixed --resume --set model.attention=off --set model.bidirectional=false --set model.reverse_source=true
	@echo; echo "── 2 of 3: an RNN with additive attention ──"
	$(HEED) train recipes/road-recurrent.toml $(ROAD_DATA) --out $(ROAD)/additive --resume
	@echo; echo "── 3 of 3: a Transformer ──"
	$(HEED) train recipes/road-transformer.toml $(ROAD_DATA) --out $(ROAD)/transformer --resume
	@echo; echo "── the bottleneck: BLEU by the length of the source ──"
	$(HEED) lab bottleneck $(ROAD)/fixed $(ROAD)/additive $(ROAD)/transformer --source $(ROAD)/data/test.ko --reference $(ROAD)/data/test.en --groups 5 --out $(ROAD)/lab
	@echo; echo "── what each of them looks at ──"
	for name in fixed additive transformer; do $(HEED) look $(ROAD)/$$name $(SENTENCE) --out $(ROAD)/$$name/look.html; done
	@echo; echo "The picture: $(ROAD)/lab/bottleneck.png     The page: $(ROAD)/lab/bottleneck.html"
	@echo "Inside:      $(ROAD)/fixed/look.html, $(ROAD)/additive/look.html, $(ROAD)/transformer/look.html"

# the statements of the lecture notes, counted by state; fails if one is open
notes: setup
	$(VENV)/bin/python -m bench.notes

# the documentation as a site in site/, English and Korean, with search and the Python reference; fails on a warning
docs: setup-docs
	HEED_DOCS=en NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --site-dir site
	HEED_DOCS=ko NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --site-dir site/ko
	@echo "The site: site/index.html     To read it with search: $(PYTHON) -m http.server --directory site"

# one thread for each process: with more of them than cores, small products wait for each other; those of the few tests
# that want two sleep while they wait (on a busy machine one such test took 2.0 seconds of CPU instead of 0.3);
# bytecode is kept even where the environment forbids it: each worker would compile all tests anew, 25 seconds of its time
test:
	@$(MAKE) --no-print-directory -j2 setup-tests system
	@$(MAKE) --no-print-directory lint
	OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive PYTHONDONTWRITEBYTECODE= $(VENV)/bin/python -m pytest -m "not long" -n $(WORKERS) --dist loadfile --no-loadscope-reorder

check-all: setup-tests system lint
	$(VENV)/bin/python -m pytest -m ""

# can the service be worn down? clients of all kinds at once, for a quarter of an hour on an idle machine
check-soak: setup-tests
	$(VENV)/bin/python -m bench.soak $(SOAK)

# would the tests notice? 200 faults put into the code, one at a time; fails if fewer than 95 % are noticed
check-mutants: setup-tests
	$(VENV)/bin/python -m bench.mutants $(MUTANTS)

# is damage noticed? files are flipped, cut, zeroed, removed and exchanged, and a training is stopped at each of its writes
check-faults: setup-tests
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m bench.faults $(FAULTS)

# does a damaged file ever lead to a traceback? 100,000 damages to what each reader reads, an hour at most; goes on where it was
check-fuzz: setup-tests
	$(VENV)/bin/python -m bench.fuzz --minutes 60 $(FUZZ)

# does bulk work survive the death of a worker? on a local cluster of Ray and one of Spark, in an environment of its own;
# a skipped test is a failure. Spark needs Java 17 or later. CLUSTERS=FOLDER puts the environment elsewhere.
check-clusters: $(CLUSTERS)/.heed
	@command -v java >/dev/null || { echo "Spark needs Java 17 or later: install it and put it on PATH (Debian: apt-get install openjdk-17-jre-headless)." >&2; exit 1; }
	OMP_NUM_THREADS=1 $(CLUSTERS)/bin/python -m pytest -m "" --no-skips tests/bulk/test_clusters.py tests/bulk/test_blocks.py

lint: setup-tests
	$(VENV)/bin/ruff check src tests bench
	$(VENV)/bin/ruff format --check src tests bench

# exact versions of every package, into constraints.txt; LOCK=--upgrade takes the newest ones
lock: $(TOOLS)/bin/uv
	$(TOOLS)/bin/python -m bench.lock $(LOCK)

# do the lowest versions that pyproject.toml allows work? in an environment of its own
check-lowest: $(TOOLS)/bin/uv
	$(TOOLS)/bin/python -m bench.lowest $(LOWEST)

# a wheel in dist/, tried in an empty environment without the repository
wheel: $(TOOLS)/bin/uv
	rm -rf dist
	$(TOOLS)/bin/uv build -q --wheel --out-dir dist .
	$(TOOLS)/bin/python -m bench.wheel $(WHEEL) dist/*.whl

$(TOOLS)/bin/uv:
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/pip install -q --disable-pip-version-check uv

$(CLUSTERS)/.heed: pyproject.toml constraints.txt
	@echo "── installing heed with Ray and Spark in $(CLUSTERS) ──"
	test -x $(CLUSTERS)/bin/pip || $(PYTHON) -m venv $(CLUSTERS)
	$(CLUSTERS)/bin/pip install -q --disable-pip-version-check -c constraints.txt -e ".[test,ray,spark]"
	@touch $@

setup: $(VENV)/.heed

setup-tests: $(VENV)/.heed-tests

setup-docs: $(VENV)/.heed-docs

$(VENV)/bin/pip:
	@echo "── making a virtual environment in $(VENV) ──"
	$(PYTHON) -m venv $(VENV)

$(VENV)/.heed: $(VENV)/bin/pip pyproject.toml constraints.txt
	@echo "── installing heed ──"
	$(VENV)/bin/pip install -q --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.heed-tests: $(VENV)/.heed
	@echo "── installing what the tests need ──"
	$(VENV)/bin/pip install -q --disable-pip-version-check -c constraints.txt -e ".[test]"
	@touch $@

$(VENV)/.heed-docs: $(VENV)/.heed
	@echo "── installing what the site needs ──"
	$(VENV)/bin/pip install -q --disable-pip-version-check -c constraints.txt -e ".[docs]"
	@touch $@

# what the tests need from the system, one after the other: apt-get runs once at a time
system:
	@$(MAKE) --no-print-directory browser
	@$(MAKE) --no-print-directory espeak

# the pages are tested in a browser; tests/chromium.py looks for the same ones
browser:
	@{ command -v chromium || command -v chromium-browser || command -v google-chrome || test -d /Applications/Chromium.app || \
	  test -d "/Applications/Google Chrome.app" || \
	  if command -v apt-get; then echo "── installing Chromium for the tests of pages ──" >&2; \
	    SUDO=$$( [ "$$(id -u)" = 0 ] || echo sudo ); $$SUDO apt-get update -qq && $$SUDO apt-get install -y -qq chromium; \
	  else echo "The pages are tested in a browser: install Chromium or Chrome and put it on PATH" \
	    "(macOS: brew install --cask chromium; Fedora: dnf install chromium)." >&2; exit 1; fi; } >/dev/null

espeak:
	@{ command -v espeak-ng || \
	  if command -v apt-get; then echo "── installing espeak-ng for the tests of speech ──" >&2; \
	    SUDO=$$( [ "$$(id -u)" = 0 ] || echo sudo ); $$SUDO apt-get update -qq && $$SUDO apt-get install -y -qq --no-install-recommends espeak-ng; \
	  else echo "espeak-ng is not installed: the tests of heed speak-corpus are skipped (macOS: brew install espeak-ng)." >&2; fi; } >/dev/null

clean:
	rm -rf $(VENV) $(DEMO) $(DEMO)-data $(ROAD) site
