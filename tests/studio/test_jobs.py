"""Jobs: order, fairness, cancel at each step, one queue with an end, events that can be read again."""

import threading
import time

import pytest

from anyfill.interface.progress import metered
from anyfill.studio import jobs
from anyfill.studio.jobs import GRACE, Job, Line, NoRoomError, Pool


def waited(condition, seconds=10.0):
    """Wait until something is true; False if it never is."""
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.005)
    return condition()


def test_tabs_take_turns_whatever_each_of_them_wants():
    line = Line()
    for item in ("a1", "a2", "a3", "b1", "c1", "b2"):
        line.put(item[0], item)
    assert [line.take() for _ in range(6)] == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_a_line_has_so_much_room_and_no_more():
    line = Line(room=2)
    line.put("a", 1)
    line.put("b", 2)
    with pytest.raises(NoRoomError):
        line.put("c", 3)
    line.take()
    line.put("c", 3)
    assert len(line) == 2


@pytest.fixture
def pool():
    one = Pool(workers=1)
    yield one
    one.close()


def test_eight_may_wait_while_one_works_and_a_ninth_may_not(pool):
    begun, go_on = threading.Event(), threading.Event()

    def work(job):
        begun.set()
        go_on.wait(10)
        return {}

    first = pool.submit("a", work)
    assert begun.wait(10)
    waiting = [pool.submit("a", lambda job: {}) for _ in range(jobs.QUEUE)]
    with pytest.raises(NoRoomError):
        pool.submit("b", lambda job: {})
    go_on.set()
    assert waited(lambda: all(job.state == "done" for job in [first, *waiting]))


def test_work_is_begun_once_for_each_key(pool):
    begun = []
    job = pool.submit("a", lambda job: {"n": begun.append("first")}, key="a" * 16)
    job.touched -= 100
    again = pool.submit("a", lambda job: {"n": begun.append("again")}, key="a" * 16)
    assert again is job
    assert time.monotonic() - job.touched < 50
    other = pool.submit("a", lambda job: {"n": begun.append("other")}, key="b" * 16)
    assert waited(lambda: job.is_over and other.is_over)
    assert begun == ["first", "other"]


def test_cancel_is_seen_at_the_next_step_and_closes_the_work(pool):
    steps, closed = [], threading.Event()

    def work(job):
        def states():
            try:
                for step in range(100_000):
                    steps.append(step)
                    time.sleep(0.001)
                    yield step, step / 100_000
            finally:
                closed.set()

        return {"last": [*metered(states(), "counting")][-1]}

    job = pool.submit("a", work)
    assert waited(lambda: len(steps) > 5)
    job.cancel()
    assert job.events[-1][0] == "cancelled"
    assert closed.wait(5)
    seen = len(steps)
    time.sleep(0.05)
    assert len(steps) == seen


def test_a_job_tells_how_far_it_is_as_the_command_line_does(pool, capsys):
    def work(job):
        return {"all": [*metered(((n, (n + 1) / 3) for n in range(3)), "counting")]}

    job = pool.submit("a", work)
    assert waited(lambda: job.is_over)
    assert job.result() == {"all": [0, 1, 2]}
    shares = [data["share"] for name, data in job.events if name == "progress"]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert capsys.readouterr().err == ""


def test_a_refusal_is_told_in_its_sentence_and_a_mistake_by_its_name(pool):
    def refuse(job):
        raise ValueError("text: expected a blank,\n got none")

    def fail(job):
        raise KeyError("x")

    refused, failed = pool.submit("a", refuse), pool.submit("a", fail)
    assert waited(lambda: refused.is_over and failed.is_over)
    assert refused.events[-1] == ("failed", {"detail": "text: expected a blank, got none"})
    assert "KeyError" in failed.events[-1][1]["detail"]


def test_a_job_that_nobody_watches_is_cancelled_and_its_result_forgotten(pool):
    go_on = threading.Event()

    def work(job):
        while not go_on.wait(0.005):
            job.tell("waiting", 0.5, "")
        return {}

    watched, left = pool.submit("a", work), pool.submit("b", lambda job: {})
    assert waited(lambda: watched.state == "running")
    watched.watchers = 1
    watched.touched = left.touched = time.monotonic() - GRACE - 1
    pool.sweep()
    assert (watched.state, left.state) == ("running", "cancelled")
    watched.watchers = 0
    pool.sweep()
    assert watched.state == "cancelled"
    watched.touched = time.monotonic() - jobs.EXPIRE - 1
    pool.sweep()
    assert watched.key not in pool.jobs


def test_what_was_cancelled_sends_nothing_more():
    job = Job(lambda job: {})
    job.send("piece", 1)
    job.cancel()
    with pytest.raises(jobs.CancelledError):
        job.send("piece", 2)
    job.finish("done", {})
    assert [name for name, _ in job.events] == ["piece", "cancelled"]


def test_events_are_read_again_from_any_of_them(visitor):
    job = visitor.post("/api/text/write", {"prompt": "the ", "length": 6, "seed": 1}).json()["job"]
    first = visitor.events(job)
    assert first[-1][0] == "done"
    assert visitor.events(job) == first
    text = visitor.get(f"/api/jobs/{job}/events", headers={"Last-Event-ID": str(len(first) - 1)}).text
    assert text.count("event: ") == 1
    assert "event: done" in text
    assert visitor.get(f"/api/jobs/{job}").json()["state"] == "done"


def test_who_asks_again_with_the_key_of_a_job_is_told_of_the_same_job(visitor, studio):
    key, before = {"X-Job": "chosen-by-the-page"}, len(studio.pool.jobs)
    for _ in range(2):
        answer = visitor.post("/api/text/write", {"prompt": "the ", "length": 6, "seed": 1}, headers=key)
        assert (answer.status_code, answer.json()["job"]) == (202, "chosen-by-the-page")
    assert len(studio.pool.jobs) == before + 1
    assert visitor.events("chosen-by-the-page")[-1][0] == "done"


@pytest.mark.parametrize("key", ["short", "a" * 65, "sixteen letters and blanks", "sixteen/letters/and/more"])
def test_a_key_that_could_be_guessed_or_is_none_is_refused(visitor, key):
    answer = visitor.post("/api/text/write", {"prompt": "the ", "length": 6}, headers={"X-Job": key})
    assert answer.status_code == 422
    assert "x-job" in answer.text.lower()


def test_there_is_no_job_of_another_key(visitor):
    for path in ("/api/jobs/none", "/api/jobs/none/events"):
        assert visitor.get(path).status_code == 404


def test_too_many_jobs_are_told_to_come_again(visitor, studio, monkeypatch):
    def full(*_, **__):
        raise NoRoomError

    monkeypatch.setattr(studio.pool, "submit", full)
    answer = visitor.post("/api/text/write", {"prompt": "a"})
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 0


def test_a_cancelled_job_is_over_at_once(visitor):
    job = visitor.post("/api/text/write", {"prompt": "the ", "length": 4000, "seed": 1}).json()["job"]
    answer = visitor.client.delete(f"/api/jobs/{job}")
    assert answer.json()["state"] == "cancelled"
    assert visitor.events(job)[-1] == ("cancelled", {})
