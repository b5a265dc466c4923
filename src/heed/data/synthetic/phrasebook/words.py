"""Single words, as people type them to look them up: those of the word lists, and others that are common."""

from heed.data.synthetic.phrasebook.topic_words import TABLES

_COMMON = """
사랑 love, 행복 happiness, 꿈 dream, 희망 hope, 평화 peace, 자유 freedom, 건강 health, 미래 future, 과거 past, 인생 life, 세계 world, 세상 world
사람 person, 여자 woman, 남자 man, 아이 child, 아기 baby, 가족 family, 친구 friend, 동생 younger_sibling, 부모님 parents, 이름 name, 나이 age
학교 school, 회사 company, 집 house, 방 room, 도시 city, 나라 country, 대한민국 South_Korea, 북한 North_Korea, 길 road, 가게 store, 사무실 office
하늘 sky, 땅 ground, 바다 sea, 산 mountain, 강 river, 해 sun, 달 moon, 별 star, 비 rain, 눈 snow, 바람 wind, 구름 cloud, 불 fire, 나무 tree, 꽃 flower
물 water, 음식 food, 밥 rice, 고기 meat, 과일 fruit, 우유 milk, 술 alcohol, 아침 morning, 점심 lunch, 저녁 evening, 밤 night, 오전 morning, 오후 afternoon
오늘 today, 내일 tomorrow, 어제 yesterday, 지금 now, 매일 every_day, 항상 always, 자주 often, 가끔 sometimes, 주말 weekend, 시간 time, 날씨 weather
일주일 one_week, 하루 one_day, 한국 Korea, 학생 student, 선생님 teacher, 의사 doctor, 직업 job, 취미 hobby, 여행 travel, 휴가 vacation, 방학 vacation
돈 money, 가격 price, 전화 phone, 전화번호 phone_number, 주소 address, 비밀번호 password, 컴퓨터 computer, 휴대폰 cell_phone, 인터넷 Internet, 사진 photo
책 book, 영화 movie, 음악 music, 노래 song, 춤 dance, 그림 picture, 게임 game, 운동 exercise, 축구 soccer, 공부 study, 숙제 homework, 시험 exam, 질문 question
머리 head, 얼굴 face, 손 hand, 발 foot, 코 nose, 입 mouth, 귀 ear, 목 neck, 마음 heart, 눈물 tears, 목소리 voice, 미소 smile, 생일 birthday, 선물 gift, 편지 letter
하나 one, 둘 two, 셋 three, 넷 four, 다섯 five, 여섯 six, 일곱 seven, 여덟 eight, 아홉 nine, 열 ten, 백 one_hundred, 천 one_thousand, 만 ten_thousand
첫째 first, 둘째 second, 마지막 last, 처음 first, 모두 everyone, 전부 all, 조금 a_little, 많이 a_lot, 너무 too_much, 빨리 quickly, 천천히 slowly, 혼자 alone, 같이 together
문제 problem, 대답 answer, 생각 thought, 이야기 story, 말 word, 약속 promise, 비밀 secret, 거짓말 lie, 사실 truth, 이유 reason, 방법 way, 번역 translation, 한국말 Korean
강아지 puppy, 고양이 cat, 개 dog, 새 bird, 물고기 fish, 호랑이 tiger, 토끼 rabbit, 곰 bear, 말씀 words, 행운 luck, 우정 friendship, 결혼 marriage, 이별 farewell, 추억 memory
"""
SLOTS = (
    *("dish", "drink", "coffee", "table", "fruit", "wear", "goods", "need", "lost", "place", "spot", "city", "country"),
    *(
        "language",
        "job",
        "family",
        "hobby",
        "sport",
        "weekday",
        "vehicle",
        "event",
        "body",
        "color",
        "school",
        "animal",
    ),
    *("volume", "holiday", "season", "room", "broken", "fee", "papers", "shown"),
)


def _words() -> dict[str, str]:
    """English by Korean; a word with several meanings has that of the common list, or is left out."""
    found: dict[str, set[str]] = {}
    for slot in SLOTS:
        for entry in TABLES.entries[slot]:
            found.setdefault(" ".join(entry.korean), set()).add(" ".join(entry.english))
    clear = {source: "".join(targets) for source, targets in found.items() if len(targets) == 1}
    for cell in _COMMON.replace("\n", ", ").split(", "):
        if cell:
            source, target = cell.split()
            clear[source] = target.replace("_", " ")
    return clear


WORDS = _words()
