"""Threads that write to one store queue up: none is refused because the others were luckier."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import memlab
from memlab.errors import StoreLocked
from memlab.store.turns import Turns


def test_turns_come_in_the_order_in_which_they_were_asked_for():
    turns, order, waiting = Turns(), [], threading.Semaphore(0)

    def take(number):
        with turns.mine(60) as mine:
            order.append((number, mine))

    with turns.mine(60):
        threads = []
        for number in range(5):
            threads.append(threading.Thread(target=take, args=(number,)))
            threads[-1].start()
            while len(turns._waiting) != number + 2:
                waiting.acquire(timeout=0.001)
    for thread in threads:
        thread.join(60)
    assert order == [(number, True) for number in range(5)]


def test_a_queue_that_moves_is_worth_waiting_in_and_one_that_does_not_is_not():
    """Ten turns of a fifth of the patience each: the last one waits twice as long as its patience, and has its turn."""
    turns, patience = Turns(), 2.0
    never = threading.Event()

    def take(_):
        with turns.mine(patience) as mine:
            never.wait(patience / 5)
            return mine

    with ThreadPoolExecutor(10) as pool:
        assert all(pool.map(take, range(10)))
    with turns.mine(60), ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: turns.mine(0.01).__enter__()).result(60) is False
    with turns.mine(0.01) as mine:  # whoever gave up left the queue
        assert mine


def test_a_turn_ends_with_an_exception_too():
    turns = Turns()
    with pytest.raises(ZeroDivisionError), turns.mine(1):
        _ = 1 / 0
    with turns.mine(0) as mine:
        assert mine


def test_forty_threads_write_though_each_has_little_patience(tmp_path):
    with memlab.MemoryStore(tmp_path / "memory.db", encoder=None, busy_timeout=0.5) as store:
        with ThreadPoolExecutor(40) as pool:
            list(pool.map(lambda number: store.remember(f"note {number}"), range(200)))
        assert len(store) == 200


def test_a_thread_that_writes_for_too_long_is_named_as_a_writer_of_another_process_is(tmp_path):
    with memlab.MemoryStore(tmp_path / "memory.db", encoder=None, busy_timeout=0.05) as store:
        with (
            store._file.write(),
            ThreadPoolExecutor(1) as pool,
            pytest.raises(StoreLocked, match="held the store for longer"),
        ):
            pool.submit(store.remember, "late").result(60)
        store.remember("now")
        other = sqlite3.connect(store.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLocked, match="held the store for longer"):
            store.remember("late again")
        other.execute("ROLLBACK")
        other.close()
        assert sorted(memory.content for memory in store.find()) == ["now"]
