"""How far the translation of a file is."""

from concurrent.futures import Future

import pytest

from heed.service.http.progress import MOST, Progress, ProgressBook
from tests.service.http.test_files import send

JOB = "0123456789abcdef"


def test_parts_are_counted_as_they_are_done():
    own, futures = Progress(), [Future() for _ in range(3)]
    own.expect(3)
    for future in futures:
        future.add_done_callback(own.finish)
    counts = [own.counts()]
    for future in futures:
        future.set_result(None)
        counts.append(own.counts())
    assert counts == [{"done": done, "total": 3} for done in range(4)]


def test_a_job_is_known_while_it_lasts():
    book = ProgressBook()
    with book.counting(JOB) as own, book.counting(JOB) as other, book.counting(None) as nothing:
        assert book.find(JOB) is own and other is None and nothing is None
    assert book.find(JOB) is None
    book.at_work = dict.fromkeys(map(str, range(MOST)))
    with book.counting(JOB) as own:
        assert own is None


def test_whoever_knows_the_identifier_can_ask(client, running):
    with running.service.progress.counting(JOB) as own:
        own.expect(2)
        own.finish()
        assert client.get(f"/v1/progress/{JOB}").json() == {"done": 1, "total": 2}
    assert client.get(f"/v1/progress/{JOB}").json() == {"done": 0, "total": 0}


def test_a_file_is_counted_while_it_is_translated(client, running, monkeypatch):
    told, finish = [], Progress.finish

    def watched(self, future=None):
        finish(self, future)
        told.append((running.service.progress.find(JOB) is self, self.counts()))

    monkeypatch.setattr(Progress, "finish", watched)
    text = "나는 학생이에요.\n나는 책을 읽어요.\n나는 학생이에요.\n"
    assert send(client, "a.txt", text.encode(), job=JOB).status_code == 200
    assert told == [(True, {"done": done, "total": 2}) for done in (1, 2)], "of two different sentences"


@pytest.mark.parametrize("job", ["short", "0123456789abcde!", "x" * 65])
def test_identifiers_are_checked(client, job):
    assert send(client, "a.txt", b"a", job=job).status_code == 400
    assert client.get(f"/v1/progress/{job}").status_code in (400, 404)
