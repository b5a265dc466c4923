"""Numbers that the two sides write differently agree, and a wrong one is still found."""

import pytest

from heed.data.agreement import numbers_disagree

SAME = [
    ("March 5, 2024", "2024년 3월 5일"),
    ("Published on March 5, 2024, at 3 p.m.", "2024년 3월 5일 오후 3시에 공개되었습니다."),
    ("On 2024-03-05", "2024년 3월 5일에"),
    ("2024.3.5", "2024년 3월 5일"),
    ("March 5, 2024", "5.3.2024"),
    ("On March 5, 2024.", "Am 5. 3. 2024."),
    ("2024년 3월 5일", "05.03.2024"),
    ("120 people in 2024", "١٢٠ شخصا في ٢٠٢٤"),
    ("120 people", "१२० लोग"),
    ("Children's Day is May 5.", "어린이날은 5월 5일이에요."),
    ("on may 10th", "５ 月 １０ 日 に"),
    ("in March 1999", "1999年三月"),
    ("at 3 p.m.", "오후 3시에"),
    ("at 15:00", "오후 3시에"),
    ("at 15:00", "at 3 p.m."),
    ("3:30 p.m., room 7", "午後三時半、7号室"),
    ("at 2:30", "2시 30분에"),
    ("at 2:30", "두 시 반에"),
    ("2:30 p.m.", "14 h 30"),
    ("9:00-18:00", "오전 9시부터 오후 6시까지"),
    ("12:00 a.m.", "오전 0시"),
    ("2 hours and 30 minutes", "2시간 30분"),
    ("10,000 won", "1만 원"),
    ("10,000 yen", "一万円"),
    ("10,000 yen", "만 엔만 빌려주세요"),
    ("12,500 won", "1만 2,500원"),
    ("12,500 won", "1만 2천5백 원"),
    ("150 million people", "1억 5천만 명"),
    ("1.5 million", "150만"),
    ("3 Millionen Leute", "300万人"),
    ("3.5 trillion won", "3조 5000억 원"),
    ("20000 yen", "二 万 円"),
    ("800 yen", "八百円"),
    ("5000 won", "오천 원"),
    ("five hundred yen", "500円"),
    ("Only 10 are left.", "10만 남았다."),
    ("the 3rd time", "第3回"),
    ("the third time, for 20 people", "第3回、20人"),
    ("21st century, part two", "21세기 2부"),
    ("He was 13 in 2003.", "2003년에 열세 살이었다."),
    ("6 people and 4 cats", "여섯 명과 고양이 4마리"),
    ("2 hexadecimal digits", "16진수 숫자 2개"),
    ("a quarter of 300", "300의 4분의 1"),
    ("Twenty-five of 100", "100명 중 25명"),
    ("Two dogs and 3 cats", "2 Hunde und 3 Katzen"),
]
OTHER = [
    ("March 5, 2024", "2024년 4월 5일"),
    ("March 5, 2024", "2024년 3월 6일"),
    ("March 5, 2024", "5.4.2024"),
    ("120 people in 2024", "١٢٠ شخصا في ٢٠٢٥"),
    ("April, 1999", "1999年三月 3"),
    ("at 3 p.m.", "오후 4시에"),
    ("at 3 a.m.", "15:00"),
    ("at 2:30", "2시 40분에"),
    ("10,000 won", "2만 원"),
    ("12,500 won", "1만 2천3백 원"),
    ("3 million", "30만"),
    ("3.5 trillion won", "3조 6000억 원"),
    ("100 yen", "二百円"),
    ("the 3rd time", "第4回"),
    ("2 hexadecimal digits", "10진수 숫자 2개"),
    ("5 people and 2 dogs", "5명과 개 3마리"),
    ("In 1984", "그때"),
]


@pytest.mark.parametrize(("english", "other"), SAME)
def test_a_number_may_be_written_in_other_ways(english, other):
    assert not numbers_disagree(english, other) and not numbers_disagree(other, english)


@pytest.mark.parametrize(("english", "other"), OTHER)
def test_another_number_is_found(english, other):
    assert numbers_disagree(english, other) and numbers_disagree(other, english)


def test_each_number_needs_one_of_its_own():
    assert numbers_disagree("3 cats and 3 dogs", "고양이 3마리와 개")
    assert not numbers_disagree("3 cats and three dogs", "고양이 3마리와 개 3마리")
    assert numbers_disagree("3 cats and three dogs", "고양이 3마리와 개 3마리, 새 3마리")


@pytest.mark.parametrize(("number", "other"), [("1", "1"), ("3:30", "15:30")])
def test_a_line_of_many_numbers_is_compared_too(number, other):
    assert not numbers_disagree(f"{number} " * 1200, f"{other} " * 1200 + "one")
    assert numbers_disagree(f"{number} " * 1200, f"{other} " * 1201)
    assert numbers_disagree(f"{number} " * 1199 + "7", f"{other} " * 1200)


def test_an_ambiguous_number_leaves_its_place_to_one_that_has_no_other():
    assert not numbers_disagree("at 3:00 and 3 a.m.", "at 3 a.m. and 15:00")
    assert numbers_disagree("at 3:00 and 3 a.m.", "at 3 p.m. and 15:00")
