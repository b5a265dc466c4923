"""Numbers, prices, times and dates, in Korean and in English."""

from collections.abc import Callable
from random import Random

from heed.data.synthetic.splits import pick

SINO = ("", "일", "이", "삼", "사", "오", "육", "칠", "팔", "구")
NATIVE = ("", "하나", "둘", "셋", "넷", "다섯", "여섯", "일곱", "여덟", "아홉")
NATIVE_TENS = ("", "열", "스물", "서른", "마흔", "쉰", "예순", "일흔", "여든", "아흔")
BEFORE_NOUN = {"하나": "한", "둘": "두", "셋": "세", "넷": "네", "스물": "스무"}
ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
DATED = 28  # days that every month has


def sino(number: int) -> str:
    """A Sino-Korean number below a hundred million: 이십삼, 만 오천."""
    if not number:
        return "영"
    large, small = divmod(number, 10_000)
    parts = [("" if large == 1 else _sino_below(large)) + "만"] if large else []
    return " ".join([*parts, _sino_below(small)] if small else parts)


def _sino_below(number: int) -> str:
    """A Sino-Korean number below ten thousand."""
    digits = zip((1000, 100, 10, 1), ("천", "백", "십", ""), strict=True)
    parts = [(number // unit % 10, name) for unit, name in digits]
    return "".join([("" if digit == 1 and name else SINO[digit]) + name for digit, name in parts if digit])


def native(number: int, before_noun: bool = True) -> str:
    """A native Korean number below a hundred: 스물다섯; before a noun 한, 두, 스무."""
    ten, one = NATIVE_TENS[number // 10], NATIVE[number % 10]
    if not before_noun:
        return ten + one
    return ten + BEFORE_NOUN.get(one, one) if one else BEFORE_NOUN.get(ten, ten)


def english(number: int) -> str:
    """An English number below a million, with hyphens and without 'and': twenty-three, five thousand."""
    if number >= 1000:
        rest = f" {english(number % 1000)}" if number % 1000 else ""
        return f"{english(number // 1000)} thousand{rest}"
    if number >= 100:
        rest = f" {english(number % 100)}" if number % 100 else ""
        return f"{ONES[number // 100]} hundred{rest}"
    if number < 20:
        return ONES[number]
    return TENS[number // 10] + (f"-{ONES[number % 10]}" if number % 10 else "")


def draw_amount(rng: Random) -> int:
    """A price as shops have them: two digits and zeros."""
    return pick(rng, (100, 100, 500, 1000, 1000, 10_000, 10_000)) * (1 + int(rng.random() ** 2 * 99))


def price(rng: Random) -> tuple[str, str]:
    """A price in won, in digits or in words."""
    amount = draw_amount(rng)
    if rng.random() < 0.5:
        digits = f"{amount:,}" if rng.random() < 0.7 else str(amount)
        return f"{digits}{pick(rng, ('원', '원', ' 원'))}", f"{amount:,} won"
    return f"{sino(amount)} 원", f"{english(amount)} won"


def count(rng: Random) -> int:
    """A number from one to ten, more often a small one."""
    return int(rng.random() ** 2 * 10) + 1


def space(rng: Random) -> str:
    """Between a number and its counter: many leave the space out."""
    return " " if rng.random() < 0.75 else ""


def clock(rng: Random) -> tuple[str, str]:
    """A time of day: 세 시 반, 3시 반, 오후 두 시; minutes are those of a clock's marks."""
    hour, minute = 1 + int(rng.random() * 12), pick(rng, (0, 0, 0, 0, 5, 10, 15, 20, 25, 30, 30, 40, 45, 50, 55))
    part, english_part, first, last = pick(rng, [("", "", 1, 12)] * 5 + DAY_PARTS)
    hour = first + hour % (last - first + 1)
    words = rng.random() < 0.6
    korean = f"{native(hour)}{space(rng)}시" if words else f"{hour}시"
    spelled = words and part not in ("오전", "오후")  # 9 a.m., but nine o'clock
    said = english(hour) if spelled else str(hour)
    if minute:
        half = minute == 30 and rng.random() < 0.7
        korean += " 반" if half else f" {sino(minute)}{space(rng)}분" if words else f" {minute}분"
        past = english(minute) if spelled else f"{minute:02}"
        if not spelled:
            said = f"{said}:{past}"
        else:
            said = f"half past {said}" if half else f"{said} {'oh ' * (minute < 10)}{past}"
    elif not part:
        said += " o'clock"
    return f"{part} {korean}".strip(), f"{said} {english_part}".strip()


DAY_PARTS = [
    ("오전", "a.m.", 1, 11), ("오후", "p.m.", 1, 11), ("아침", "in the morning", 6, 10),
    ("저녁", "in the evening", 5, 9), ("밤", "at night", 9, 12),
]  # fmt: skip


def date(rng: Random) -> tuple[str, str]:
    """A day of a month: 5월 3일, 오월 삼 일."""
    month, day = 1 + int(rng.random() * 12), 1 + int(rng.random() * DATED)
    if rng.random() < 0.7:
        return f"{month}월 {day}일", f"{MONTHS[month - 1]} {day}"
    name = {6: "유", 10: "시"}.get(month, sino(month))
    return f"{name}월 {sino(day)} 일", f"{MONTHS[month - 1]} {day}"


def month(rng: Random) -> tuple[str, str]:
    """A month: 3월, 삼월."""
    number = 1 + int(rng.random() * 12)
    name = {6: "유", 10: "시"}.get(number, sino(number))
    return pick(rng, (f"{number}월", f"{name}월")), MONTHS[number - 1]


def age(rng: Random) -> tuple[str, str]:
    """An age: 스물다섯 살, 25살, 25세."""
    years = 5 + int(rng.random() * 65) if rng.random() < 0.5 else 18 + int(rng.random() * 23)
    if rng.random() < 0.5:
        return f"{native(years)}{space(rng)}살", f"{english(years)} years old"
    return pick(rng, (f"{years}살", f"{years} 살", f"{years}세")), f"{years} years old"


def _counted(
    korean: str, singular: str, plural: str, is_sino: bool, most: int, first: int = 1, one: str = "one"
) -> Callable[[Random], tuple[str, str]]:
    def draw(rng: Random) -> tuple[str, str]:
        number = first + int(rng.random() ** 1.5 * most)
        unit = singular if number == 1 else plural
        if rng.random() < 0.6:
            said = sino(number) if is_sino else native(number)
            return f"{said}{space(rng)}{korean}", f"{one if number == 1 else english(number)} {unit}"
        return f"{number}{korean}", f"{number} {unit}"

    return draw


def times(rng: Random) -> tuple[str, str]:
    """How often: 한 번, 두 번, 3번."""
    number = 1 + int(rng.random() ** 1.5 * 6)
    words = rng.random() < 0.6
    often = {1: "once", 2: "twice"}.get(number) or f"{english(number) if words else number} times"
    return (f"{native(number)}{space(rng)}번" if words else f"{number}번"), often


def floor(rng: Random) -> tuple[str, str]:
    """A floor: 3층, 삼 층."""
    number = 1 + int(rng.random() * 12)
    return pick(rng, (f"{number}층", f"{sino(number)} 층", f"{sino(number)}층")), f"the {ordinal(number)} floor"


def ordinal(number: int) -> str:
    """An English ordinal up to twelve."""
    return [
        "first",
        "second",
        "third",
        "fourth",
        "fifth",
        "sixth",
        "seventh",
        "eighth",
        "ninth",
        "tenth",
        "eleventh",
        "twelfth",
    ][number - 1]


def turn(rng: Random) -> tuple[str, str]:
    """A place in a row: 첫 번째, 두 번째."""
    number = 1 + int(rng.random() * 10)
    return ("첫" if number == 1 else native(number)) + " 번째", ordinal(number)


def year(rng: Random) -> tuple[str, str]:
    """A year, in digits."""
    number = 1960 + int(rng.random() * 75)
    return f"{number}년", str(number)


def whole_date(rng: Random) -> tuple[str, str]:
    """A day of a year: 2024년 3월 1일."""
    (korean, said), (years, number) = date(rng), year(rng)
    return f"{years} {korean}", f"{said}, {number}"


def exit_number(rng: Random) -> tuple[str, str]:
    """An exit of a station: 3번 출구."""
    number = 1 + int(rng.random() * 12)
    return f"{pick(rng, (str(number), sino(number) + ' '))}번 출구".replace("  ", " "), f"exit {number}"


def line_number(rng: Random) -> tuple[str, str]:
    """A line of the subway: 2호선."""
    number = 1 + int(rng.random() * 9)
    return pick(rng, (f"{number}호선", f"{sino(number)} 호선")), f"line {number}"


def bare_number(rng: Random) -> tuple[str, str]:
    """A number alone, Sino-Korean or native."""
    if rng.random() < 0.5:
        number = 1 + int(rng.random() * 99)
        return native(number, before_noun=False), english(number)
    number = pick(
        rng, (int(rng.random() * 11), int(rng.random() * 100), 100 * (1 + int(rng.random() * 9)), 1000, 10_000)
    )
    return sino(number), english(number)


DRAWN: dict[str, Callable[[Random], tuple[str, str]]] = {
    "price": price,
    "clock": clock,
    "date": date,
    "month": month,
    "age": age,
    "number": bare_number,
    "floor": floor,
    "turn": turn,
    "year": year,
    "fulldate": whole_date,
    "exit": exit_number,
    "line": line_number,
    "books": _counted("권", "", "", False, 9),
    "animals": _counted("마리", "", "", False, 9),
    "heads": _counted("명", "", "", False, 12),
    "weeks": _counted("주", "week", "weeks", True, 8),
    "people": _counted("명", "person", "people", False, 8),
    "guests": _counted("분", "person", "people", False, 6),
    "minutes": _counted("분", "minute", "minutes", True, 40),
    "hours": _counted("시간", "hour", "hours", False, 12),
    "nights": _counted("박", "night", "nights", True, 7),
    "days": _counted("일", "day", "days", True, 14),
    "months": _counted("개월", "month", "months", True, 11),
    "years": _counted("년", "year", "years", True, 20),
    "servings": _counted("인분", "serving", "servings", True, 5),
    "tickets": _counted("장", "ticket", "tickets", False, 6),
    "pieces": _counted("개", "", "", False, 9),
    "coffees": _counted("잔", "", "", False, 5, first=2),
    "cups": _counted("잔", "cup", "cups", False, 5, one="a"),
    "glasses": _counted("잔", "glass", "glasses", False, 5, one="a"),
    "bottles": _counted("병", "bottle", "bottles", False, 5, one="a"),
    "degrees": _counted("도", "degree", "degrees", True, 35),
    "times": times,
}
