"""What every kind of story is made of, and the names and sentences that all kinds share."""

from typing import NamedTuple


class StoryKind(NamedTuple):
    """A kind of story: the facts it can have, and its sentence templates.

    `amounts` are the lowest, the highest and the step of its number; `causes` are (as a sentence, as a clause). `lead` to `why` are
    templates for the facts of that name, `restatements` repeat facts, and `distractors` do not matter.
    """

    name: str
    things: tuple[str, ...]
    jobs: tuple[str, ...]
    amounts: tuple[int, int, int]
    causes: tuple[tuple[str, str], ...]
    lead: tuple[str, ...]
    who: tuple[str, ...]
    day: tuple[str, ...]
    many: tuple[str, ...]
    why: tuple[str, ...]
    restatements: tuple[str, ...]
    quotes: tuple[str, ...]
    distractors: tuple[str, ...]
    summary: tuple[str, ...]


WOMEN, MEN, FAMILIES = map(str.split, (
    "Mara Ida Nell Clara Ruth Edith Vera Hanna Lena Tessa Nora Iris Greta Paula Stella Wanda Olga Dora Flora Judith",
    "Tom Felix Oscar Hugo Peter Walter Simon Leo Arthur Victor Martin Conrad Julian Edgar Max Anton Ralph Gilbert Otto Jonas",
    """Ellwood Harker Brandt Tolley Marsh Quill Penrose Vance Kettle Drummond Oakes Lindgren Farrow Sutter Bramble
    Hollis Winter Castell Pike Morrow Thorne Ashby Keller Rudd Fenwick Galloway Stroud Larkin Mercer Nolan Orchard
    Pruitt Redfern Sandell Tanner Umber Varga Whitlow Yates Zeller""",
))  # fmt: skip
TOWNS = [
    "Port Hale", "Saltmere", "Ashcombe", "Lower Wick", "Brindle", "Stonebridge", "Kelmore", "Old Harbour", "Fernley",
    "Dunmarsh", "Maple Cross", "Whitford", "Torrance Bay", "Greyfield", "Hollow Hill", "Millbrook", "Eastmoor", "Carrow",
    "Linden", "Silverdale", "Westerby", "Oakhaven", "Pellworth", "Red Rock", "Thistledown", "Upper Lune", "Varley",
    "Windmere", "Yarrow", "Amberton", "Birchwood", "Copper Creek", "Dovecote", "Elmstead", "Foxley", "Glenning",
]  # fmt: skip
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DAYS = [f"on {day}{part}" for day in _WEEKDAYS for part in ("", " morning", " afternoon", " evening")]
DISTRACTORS = (
    "A reporter from the local paper took pictures.", "The cafés around the square were full.",
    "It rained {other_day}, as it often does here.", "The local radio spent {number} minutes on the story.",
    "The mayor of {elsewhere} sent greetings.", "Meanwhile, {elsewhere} is getting ready for its spring fair.",
    "{someone}, who happened to pass by, had to ask what was going on.",
    "The market will be held in {elsewhere} {other_day}.", "Prices for bread and milk have hardly changed.",
    "The next issue of this paper will come out {other_day}.", "{someone} from {elsewhere} heard about it on the bus.",
    "Roadworks on the way to {elsewhere} will go on for {number} weeks.",
)  # fmt: skip
