"""A small shop and its customers: a synthetic purchase log for recommenders, with the rules in this file.

A customer has two departments of choice and buys for one project after another, mostly of these. The things for a project are bought in
the order in which they are needed, some are skipped, two projects may be under way at once, and now and then a
staple is taken along. So what comes next follows from the order and from the things before the last, not from what sells
well. A project is done once. Times are those of visits.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import NamedTuple

from heed.data.synthetic.splits import pick
from heed.files import atomic_file

EDITION = 1  # incremented when what is drawn changes
FAVOURITES = 2  # departments of one customer
AT_HOME = 0.9  # how often a project is of one of these
BOUGHT = 0.85  # how often a thing for a project is bought
TWO_AT_ONCE = 0.35  # how often a second project is under way
STAPLE = 0.08  # how often a staple is taken along
PROJECTS = (2, 5)  # of one customer, the fewest and the most: each department has five
BEGIN = datetime(2025, 1, 1, 8)

# What each department sells: a line is a project, its things in the order in which they are needed.
DEPARTMENTS = {
    "kitchen": """
        bread flour, dry yeast, mixing bowl, dough scraper, loaf tin, bread knife, bread box
        green tea, teapot, tea strainer, tea cups, honey, serving tray
        coffee beans, coffee grinder, paper filters, coffee pot, milk jug, coffee mugs
        rice, rice cooker, soy sauce, sesame oil, chopsticks, rice bowls
        pasta, large pot, colander, tomato sauce, parmesan, cheese grater
        cake flour, vanilla, whisk, cake tin, icing sugar, birthday candles""",
    "garden": """
        tomato seeds, potting soil, seed trays, watering can, bamboo canes, garden twine, tomato feed
        rose bush, garden spade, compost, garden gloves, pruning shears, plant labels
        grass seed, garden rake, lawn feed, garden hose, sprinkler, lawn mower
        bird house, ladder, bird seed, bird bath, binoculars, bird guide
        flower bulbs, bulb planter, window box, fertilizer, small watering can, vase""",
    "workshop": """
        masking tape, dust sheets, wall filler, sandpaper, primer, wall paint, paint roller
        wooden boards, tape measure, pencil, hand saw, wood glue, clamps, varnish
        wall hooks, spirit level, power drill, wall plugs, screws, picture frames
        floor tiles, tile cutter, tile adhesive, notched trowel, grout, grout sponge
        light bulb, voltage tester, screwdriver set, lamp shade, extension cable, timer switch""",
    "sport": """
        running shoes, running socks, water bottle, stopwatch, reflective vest, running belt
        yoga mat, yoga blocks, stretch band, foam roller, meditation cushion, incense
        bicycle, bicycle helmet, bicycle lock, bicycle lights, pump, chain oil, tyre levers
        swimsuit, swimming goggles, swimming cap, beach towel, flip-flops, ear plugs
        football, shin pads, football boots, goal net, whistle, training bibs""",
    "travel": """
        tent, sleeping bag, camping mat, camping stove, gas cartridge, head torch
        hiking boots, backpack, walking poles, map, compass, rain jacket, blister plasters
        suitcase, luggage tag, travel adapter, neck pillow, sleep mask, travel toothbrush
        fishing rod, fishing line, fishing hooks, bait box, folding chair, cool box
        sun hat, sun cream, sunglasses, beach umbrella, picnic blanket, paperback novel""",
    "hobby": """
        sketch pad, drawing pencils, eraser, watercolours, fine brushes, easel, drying rack
        knitting wool, knitting needles, stitch markers, knitting patterns, wool needle, buttons
        guitar, guitar strings, tuner, capo, guitar stand, songbook
        camera, memory card, tripod, camera bag, lens cloth, photo album
        chess board, chess clock, chess book, score sheets, travel chess set, chess trophy""",
    "baby and pets": """
        puppy food, dog bowl, dog basket, collar, dog lead, chew toy, dog shampoo
        kitten food, cat litter, litter tray, scratching post, cat toy, cat carrier
        nappies, baby wipes, changing mat, nappy cream, baby bath, hooded towel
        aquarium, gravel, water plants, water filter, fish food, fish net
        cot, cot mattress, baby blanket, mobile, night light, baby monitor""",
    "study": """
        notebook, fountain pen, ink, highlighters, sticky notes, ring binder, hole punch
        laptop, laptop sleeve, mouse, keyboard, monitor, desk lamp, headphones
        dictionary, flash cards, grammar book, exercise book, language course, foreign newspaper
        microscope, glass slides, pipettes, petri dishes, lab coat, safety goggles
        wrapping paper, scissors, sticky tape, ribbon, gift tags, greeting card""",
}
STAPLES = (
    "milk",
    "eggs",
    "bananas",
    "apples",
    "butter",
    "soap",
    "toothpaste",
    "kitchen roll",
    "batteries",
    "chocolate",
)

Project = tuple[str, ...]


class Purchase(NamedTuple):
    """A single purchase."""

    user: str
    item: str
    time: datetime


def projects() -> dict[str, list[Project]]:
    """The projects of each department."""
    return {
        name: [tuple(thing.strip() for thing in line.split(",")) for line in lines.strip().splitlines()]
        for name, lines in DEPARTMENTS.items()
    }


def purchases(users: int, seed: int = 0) -> Iterator[Purchase]:
    """The purchases of all customers, one customer after another; each depends only on the seed and the customer's
    number.
    """
    known = projects()
    for number in range(1, users + 1):
        rng = Random(f"shop {EDITION} {seed} {number}")
        when = BEGIN + timedelta(minutes=int(rng.random() * 300 * 24 * 60))
        for item in _things(rng, known):
            yield Purchase(str(number), item, when)
            later = rng.random() < 0.5
            when += timedelta(minutes=1 + int(rng.random() * (6 * 24 * 60 if later else 5)))


def _things(rng: Random, known: dict[str, list[Project]]) -> Iterator[str]:
    """The purchases of one customer, in order."""
    departments = rng.sample(list(known), FAVOURITES)
    left = PROJECTS[0] + int(rng.random() * (PROJECTS[1] - PROJECTS[0] + 1))
    under_way: list[list[str]] = []
    done: set[Project] = set()
    while left or under_way:
        if left and (not under_way or (len(under_way) == 1 and rng.random() < TWO_AT_ONCE)):
            under_way.append(_planned(rng, known, departments, done))
            left -= 1
        chosen = pick(rng, under_way)
        yield chosen.pop(0)
        if rng.random() < STAPLE:
            yield pick(rng, STAPLES)
        under_way = [one for one in under_way if one]


def _planned(rng: Random, known: dict[str, list[Project]], departments: Sequence[str], done: set[Project]) -> list[str]:
    """The purchases for a project that is not yet done, at least two items."""
    department = pick(rng, departments if rng.random() < AT_HOME else list(known))
    things = pick(rng, [one for one in known[department] if one not in done])
    done.add(things)
    bought = [thing for thing in things if rng.random() < BOUGHT]
    return bought if len(bought) > 1 else list(things[:2])


def write(path: Path, users: int, seed: int = 0) -> None:
    """A log of all purchases in order of time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found = sorted(purchases(users, seed), key=lambda one: one.time)
    with atomic_file(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        file.write("user,item,time\n")
        for one in found:
            file.write(f"{one.user},{one.item},{one.time.isoformat()}\n")
