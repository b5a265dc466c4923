"""The vocabulary: tables, and the lists that are parsed from them."""

import re

from heed.data.synthetic.phrasebook.korean_inflection import Stem, final_consonant
from heed.data.synthetic.phrasebook.parts_of_speech import Adjective, Adverb, Noun, Person, Place, Verb


def rows(table: str) -> list[list[str]]:
    """The cells of a table: semicolons or line breaks separate rows, bars separate columns, '-' is an empty cell."""
    lines = [[cell.strip() for cell in line.split("|")] for line in re.split("[;\n]", table.strip())]
    return [["" if cell == "-" else cell for cell in line] for line in lines]


def words(cell: str) -> tuple[str, ...]:
    """The words of a cell."""
    return tuple(cell.split())


def word_pairs(cell: str) -> list[tuple[str, str]]:
    """The pairs of a Korean and an English word in a cell."""
    both = cell.replace(",", " ").split()
    return list(zip(both[::2], both[1::2], strict=True))


def stem(cell: str) -> Stem:
    """A stem as tables write it: 듣/ㄷ."""
    return Stem(*cell.split("/"))


def named_person(korean: str, english: str) -> Person:
    """A person by name: 지은이 in plain speech, 지은 씨 in polite speech."""
    plain = korean + "이" if final_consonant(korean) else korean
    return Person((plain,), (korean, "씨"), (english,), (english,), "he", korean)


def person(plain: str, polite: str, english: str, object_form: str, agreement: str) -> Person:
    """A person from a row of a table."""
    return Person(words(plain), words(polite), words(english), words(object_form), agreement)


def verb(text: str, english: str, *cells: str) -> Verb:
    """A verb from a row of its table."""
    base, past_form, *tail = english.split()
    return Verb(stem(text), base, past_form, tuple(tail), *map(words, cells))


# plain Korean | polite Korean | English | English object form | agreement
_PRONOUNS = """
나 | 저 | I | me | I; 너 | 당신 | you | you | you; 우리 | 우리 | we | us | we; 그 | 그 | he | him | he
그녀 | 그녀 | she | her | he; 그들 | 그들 | they | them | they
"""
_PEOPLE = """
내 친구 | 제 친구 | my friend | my friend | he; 내 남동생 | 제 남동생 | my brother | my brother | he
내 여동생 | 제 여동생 | my sister | my sister | he; 그 아이 | 그 아이 | that child | that child | he
그 학생 | 그 학생 | that student | that student | he; 그 의사 | 그 의사 | that doctor | that doctor | he
"""
_FRIENDS = """
투빅 Tobigs 민수 Minsu 지은 Jieun 수진 Sujin 영희 Younghee 철수 Cheolsu 하늘 Haneul 준호 Junho 서연 Seoyeon
유나 Yuna 지훈 Jihoon 은지 Eunji
"""
_JOBS = """
학생 student 교사 teacher 의사 doctor 간호사 nurse 가수 singer 배우 actor 작가 writer 요리사 cook 화가 artist
변호사 lawyer 기자 reporter 엔지니어 engineer
"""
# number | counter | unit | kinds | Korean and English
_NOUNS = """
count | 개 | - | fruit food | 사과 apple, 오렌지 orange, 바나나 banana, 귤 tangerine
count | 개 | - | egg | 계란 egg
count | 개 | - | food made | 샌드위치 sandwich
count | 개 | - | food made baked | 케이크 cake
mass | - | - | food made baked | 빵 bread
mass | 그릇 | bowl | food | 라면 ramen, 밥 rice
mass | 잔 | glass | drink | 물 water
mass | 잔 | glass | drink tasty | 우유 milk, 주스 juice, 맥주 beer
mass | 잔 | cup | drink tasty hot | 커피 coffee, 차 tea
count | 권 | - | text book gift | 책 book, 잡지 magazine
count | 권 | - | text book gift written | 소설 novel
count | 통 | - | text sent written | 편지 letter, 이메일 email
count | 편 | - | text written | 시 poem
count | 편 | - | show | 영화 movie, 드라마 drama, 연극 play
mass | - | - | music | 음악 music
mass | - | - | broadcast | 텔레비전 television
count | 곡 | - | music song | 노래 song
mass | - | - | subject | 한국어 Korean, 영어 English, 수학 math, 역사 history, 과학 science
the | - | - | instrument | 피아노 piano, 기타 guitar, 바이올린 violin
count | 개 | - | thing gift crafted | 가방 bag, 모자 hat
count | 개 | - | thing crafted | 의자 chair
count | 개 | - | thing gift | 우산 umbrella
count | 개 | - | thing gift machine | 시계 clock
count | 대 | - | thing machine ridden | 자전거 bicycle
count | 대 | - | thing machine | 컴퓨터 computer
count | 송이 | - | flower gift | 꽃 flower
count | 장 | - | picture gift sent | 사진 photo
count | 장 | - | picture gift drawn | 그림 picture
count | 마리 | - | animal | 고양이 cat, 강아지 puppy, 새 bird
count | 마리 | - | horse ridden | 말 horse
count | 채 | - | house | 집 house
the | - | - | door | 문 door, 창문 window
the | - | - | room | 방 room, 부엌 kitchen
"""
# stem | English, past, words after it | kinds of objects | kinds of places | manners | traits
_VERBS = """
먹 | eat ate | food egg | home school town green | 빨리 천천히 혼자 | action
마시 | drink drank | drink | home town office | 빨리 천천히 혼자 | action
읽 | read read | text | home school town green | 빨리 천천히 혼자 | action
쓰 | write wrote | written | home school town | 빨리 천천히 혼자 | action pen
보 | watch watched | show broadcast | home theater | 혼자 | action
듣/ㄷ | listen listened to | music | home town green | 혼자 | action
부르/르 | sing sang | song | home school green | 혼자 | action
사 | buy bought | food egg drink book thing flower picture | shop | 혼자 | action
팔 | sell sold | food egg drink book thing flower picture | shop | - | action
만들 | make made | made crafted | home school | 빨리 천천히 혼자 | action
굽/ㅂ | bake baked | baked | home | 천천히 혼자 | action
씻 | wash washed | fruit | home | 빨리 천천히 | action
배우 | learn learned | subject instrument | home school | 빨리 혼자 | action
가르치 | teach taught | subject | school | - | action receiver
공부하 | study studied | subject | home school town | 열심히 혼자 | action noun
연주하 | play played | instrument | home school theater | 혼자 | action noun
주 | give gave | gift food egg drink | - | - | action receiver
보내 | send sent | sent | - | 빨리 | action solo receiver
보여주 | show showed | picture book thing flower animal | - | - | action receiver
빌려주 | lend lent | book thing | - | - | action receiver
고르/르 | choose chose | book thing flower picture | shop | 빨리 천천히 혼자 | action
빌리 | borrow borrowed | book thing | school shop | 혼자 | action
기다리 | wait waited for | person | home school town green | 혼자 | action
만나 | meet met | person | school town green shop | - | action
돕/ㅂ | help helped | person | home school shop office | - | action
초대하 | invite invited | person | - | - | action solo noun
짓/ㅅ | build built | house | - | 빨리 천천히 혼자 | action
그리 | draw drew | drawn flower animal horse | home school green | 천천히 혼자 | action pen
고치 | fix fixed | machine | home school shop | 빨리 천천히 혼자 | action
열 | open opened | door | - | 빨리 천천히 | action solo
닫 | close closed | door | - | 빨리 천천히 | action solo
청소하 | clean cleaned | room | - | 빨리 혼자 | action noun
타 | ride rode | ridden | green | 천천히 혼자 | action single
키우 | raise raised | animal horse | home | 혼자 | action
자 | sleep slept | - | home school | 많이 일찍 늦게 혼자 | action solo
웃 | laugh laughed | - | school town green | 많이 | action
울 | cry cried | - | home school theater | 많이 혼자 | action solo
걷/ㄷ | walk walked | - | green | 많이 빨리 천천히 혼자 | action
뛰 | run ran | - | green school | 많이 빨리 천천히 혼자 | action
일하 | work worked | - | home town shop office | 많이 열심히 혼자 | action noun
쉬 | rest rested | - | home green | 많이 혼자 | action
놀 | play played | - | home school green | 많이 혼자 | action
춤추 | dance danced | - | home school theater green | 많이 천천히 혼자 | action
수영하 | swim swam | - | sea | 많이 천천히 혼자 | action noun
운동하 | exercise exercised | - | home school green | 많이 열심히 혼자 | action noun
요리하 | cook cooked | - | home town | 천천히 혼자 | action noun
산책하 | take took a walk | - | green | 혼자 | action noun
샤워하 | take took a shower | - | home | 빨리 | action solo noun
쇼핑하 | go went shopping | - | - | 많이 혼자 | action noun
여행하 | travel traveled | - | - | 많이 혼자 | action noun
운전하 | drive drove | - | - | 빨리 천천히 혼자 | action noun
노래하 | sing sang | - | home school green | 혼자 | action noun
빨래하 | do did the laundry | - | home | 빨리 혼자 | action noun
설거지하 | do did the dishes | - | home | 빨리 혼자 | action noun
이야기하 | talk talked | - | home school town green | 많이 천천히 | action noun
일어나 | get got up | - | - | 일찍 늦게 | action solo
가 | go went | - | any | 빨리 일찍 늦게 혼자 | action moves rides
오 | come came | - | any | 빨리 일찍 늦게 혼자 | action moves rides
걸어가 | walk walked | - | any | 빨리 천천히 혼자 | action moves
뛰어가 | run ran | - | any | 빨리 혼자 | action moves
돌아가 | go went back | - | any | 일찍 늦게 혼자 | action moves rides
돌아오 | come came back | - | any | 일찍 늦게 혼자 | action moves rides
사랑하 | love loved | person | - | 많이 정말 | feels
좋아하 | like liked | person food egg drink music animal subject | - | 많이 정말 | feels
싫어하 | hate hated | person food egg drink music animal subject | - | 많이 정말 | feels
그리워하 | miss missed | person | - | 많이 정말 | feels
걱정하 | worry worried about | person | - | 많이 정말 | feels noun
존경하 | respect respected | person | - | 많이 정말 | feels noun
믿 | trust trusted | person | - | 정말 | feels
이해하 | understand understood | person | - | 정말 | feels noun
기억하 | remember remembered | person | - | 정말 | feels noun
"""
# kinds of nouns | stem and English
_ADJECTIVES = """
person | 바쁘 busy, 행복하 happy, 피곤하 tired, 친절하 kind, 아프 sick, 배고프 hungry, 똑똑하 smart
person | 건강하 healthy, 외롭/ㅂ lonely; person animal | 귀엽/ㅂ cute; person book show song | 유명하 famous
person text show music | 슬프 sad; fruit thing animal house room | 크 big, 작 small; thing flower picture | 예쁘 pretty
book thing | 비싸 expensive, 싸 cheap; thing | 무겁/ㅂ heavy, 가볍/ㅂ light; food egg tasty | 맛있 delicious
fruit | 달 sweet; fruit egg | 신선하 fresh; drink | 차갑/ㅂ cold; hot | 뜨겁/ㅂ hot; text show | 재미있 interesting
book subject | 어렵/ㅂ difficult, 쉽/ㅂ easy; text show song | 길 long, 짧 short
music flower picture green sea | 아름답/ㅂ beautiful; ridden | 빠르/르 fast, 느리 slow
house room school town shop | 깨끗하 clean; house room school town green | 조용하 quiet
school town shop green theater sea | 멀 far, 가깝/ㅂ close
"""
# Korean | at it | to it | as a subject | kinds
_PLACES = """
집 | at home | home | - | home; 학교 | at school | to school | the school | school
도서관 | in the library | to the library | the library | school; 카페 | at the cafe | to the cafe | the cafe | town
식당 | at the restaurant | to the restaurant | the restaurant | town
공원 | in the park | to the park | the park | green; 정원 | in the garden | - | the garden | green
시장 | at the market | to the market | the market | shop; 가게 | at the store | to the store | the store | shop
극장 | at the theater | to the theater | the theater | theater; 사무실 | at the office | to the office | - | office
병원 | at the hospital | to the hospital | - | office; 바다 | in the sea | to the sea | the sea | sea
서울 | in Seoul | to Seoul | - | city; 부산 | in Busan | to Busan | - | city
"""
# Korean | English | when it fits: usual, now, soon (future, wish, ability), past
_TIMES = """
매일 | every day | usual; 매일 아침 | every morning | usual; 자주 | often | usual middle
가끔 | sometimes | usual middle; 항상 | always | usual middle; 지금 | now | now; 오늘 | today | soon past
오늘 아침에 | this morning | past; 어제 | yesterday | past; 어제 저녁에 | yesterday evening | past
지난주에 | last week | past; 내일 | tomorrow | soon; 내일 아침에 | tomorrow morning | soon; 다음 주에 | next week | soon
곧 | soon | future
"""
_MANNERS = """
빨리 | quickly | end; 천천히 | slowly | end; 혼자 | alone | end; 열심히 | hard | end; 일찍 | early | end
늦게 | late | end; 많이 | a lot | end; 정말 | really | middle; 아주 | very | middle; 너무 | too | middle
"""
_SPOTS = """
책상 위 | on the desk | book thing flower picture; 식탁 위 | on the table | food egg drink book flower
상자 안 | in the box | book fruit egg picture; 냉장고 안 | in the refrigerator | fruit egg drink
정원 | in the garden | flower animal
"""
_MEANS = """
버스 | by bus | rides; 기차 | by train | rides; 지하철 | by subway | rides; 펜 | with a pen | pen
연필 | with a pencil | pen
"""
_NUMERALS = "한 one 두 two 세 three 네 four 다섯 five 여섯 six 일곱 seven 여덟 eight 아홉 nine 열 ten"

ME, YOU, WE, HE, SHE, THEY = (person(*row) for row in rows(_PRONOUNS))
PEOPLE = [person(*row) for row in rows(_PEOPLE)]
FRIENDS = [named_person(*pair) for pair in word_pairs(_FRIENDS)]
JOBS = [Noun(korean, "count", english, "", "", ("job",)) for korean, english in word_pairs(_JOBS)]
NOUNS = [
    Noun(korean, number, english, counter, unit, words(kinds))
    for number, counter, unit, kinds, cell in rows(_NOUNS)
    for korean, english in word_pairs(cell)
]
VERBS = [verb(*row) for row in rows(_VERBS)]
ADJECTIVES = [
    Adjective(stem(ko), english, words(kinds)) for kinds, cell in rows(_ADJECTIVES) for ko, english in word_pairs(cell)
]
PLACES = [Place(ko, words(at), words(to), words(name), words(kinds)) for ko, at, to, name, kinds in rows(_PLACES)]
TIMES = [(Adverb(words(ko), words(english), "middle" in fits), words(fits)) for ko, english, fits in rows(_TIMES)]
MANNERS = {ko: Adverb((ko,), words(english), position == "middle") for ko, english, position in rows(_MANNERS)}
SPOTS = [Place(ko, words(at), (), (), words(kinds)) for ko, at, kinds in rows(_SPOTS)]
MEANS = [Place(ko, words(by), (), (), words(kinds)) for ko, by, kinds in rows(_MEANS)]
NUMERALS = word_pairs(_NUMERALS)
