"""Other processes for the tests: ``python workers.py <what> <path> ...``, driven by lines on stdin and stdout."""

from __future__ import annotations

import os
import random
import sys
import time

from memlab.encoders import HashingEncoder
from memlab.store import MemoryStore


def say(*words: object) -> None:
    print(*words, flush=True)


def hear() -> str:
    return sys.stdin.readline().strip()


def write_many(path: str, total: str) -> None:
    """Write in batches and one by one; after each commit say what it was, and go on when the reader has seen it."""
    store = MemoryStore(path, HashingEncoder(32))
    done = turn = 0
    while done < int(total):
        size = min(500, int(total) - done) if turn % 3 == 0 else 1
        texts = [f"common memory number{done + i}x about topic{(done + i) % 13}" for i in range(size)]
        ids = [f"m-{done + i:05}" for i in range(size)]
        if size == 1:
            store.remember(texts[0], memory_id=ids[0])
        else:
            store.remember_many(
                [{"content": t, "memory_id": i} for t, i in zip(texts, ids, strict=True)], batch_size=size
            )
        done += size
        turn += 1
        say(done)
        if hear() != "seen":
            return
        if done >= 2000 and turn % 3 and turn < 60:
            continue  # some more singles in the middle
    say("end")


def write_freely(path: str, name: str, count: str) -> None:
    """Write as fast as it goes, one by one."""
    store = MemoryStore(path, HashingEncoder(32), busy_timeout=60)
    say("ready")
    hear()
    for i in range(int(count)):
        store.remember(f"{name} memory {i}", memory_id=f"m-{name}-{i}")
    say("end")


def open_new(folder: str, count: str) -> None:
    """Open stores that do not exist yet, each at the moment that all processes do."""
    say("ready")
    for i in range(int(count)):
        hear()
        with MemoryStore(f"{folder}/new-{i}.db", HashingEncoder(8), busy_timeout=60) as store:
            store.remember(f"from {os.getpid()}")
        say(i)


def killed(path: str, rounds: str, seed: str) -> None:
    """Fork a bulk writer, kill it at a random moment, look at what it left; again and again."""
    random_ = random.Random(int(seed))
    # Everything is imported and the store made before the first fork.
    with MemoryStore(path, HashingEncoder(32, token_limit=8)) as store:
        store.remember("first words of all. and some more words here. and a third sentence too")
        store.check()
        store.vectors()
    acknowledged: set[str] = set()
    in_work = 0
    for number in range(int(rounds)):
        out, into = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(out)
            _bulk_writer(path, number, into)
            os._exit(0)
        os.close(into)
        os.set_blocking(out, True)
        # Wait for a number of commits, then some part of the time that one takes.
        heard = b""
        wanted = random_.randint(0, 3)
        while heard.count(b"\n") < wanted and (part := os.read(out, 4096)):
            heard += part
        time.sleep(random_.random() * 0.025)
        os.kill(child, 9)
        while part := os.read(out, 4096):
            heard += part
        os.close(out)
        _, status = os.waitpid(child, 0)
        in_work += os.WIFSIGNALED(status)
        acknowledged.update(heard.decode().rpartition("\n")[0].split())
        with MemoryStore(path, HashingEncoder(32, token_limit=8)) as store:
            report = store.check()
            if not report.ok:
                raise SystemExit(f"round {number}: {report}")
            if report.unindexed:
                raise SystemExit(f"round {number}: a commit without its terms: {report}")
            present = {memory.memory_id for memory in store.get_many(acknowledged)}
            if lost := acknowledged - present:
                raise SystemExit(f"round {number}: lost {sorted(lost)}")
            batches: dict[str, int] = {}
            for (memory_id,) in store.db.execute("SELECT id FROM memories WHERE id LIKE 'k-%'"):
                batch = memory_id.rpartition("-")[0]
                batches[batch] = batches.get(batch, 0) + 1
            if set(batches.values()) - {4}:
                raise SystemExit(f"round {number}: half a batch: {batches}")
            if len(store) > 400:
                store.db.conn.execute("UPDATE memories SET trashed_at = '2026-01-01T00:00:00.000Z'")
                store.purge()
                acknowledged.clear()
    say(in_work, len(acknowledged))


def _bulk_writer(path: str, number: int, into: int) -> None:
    store = MemoryStore(path, HashingEncoder(32, token_limit=8))
    batch = 0

    def acknowledge(done: int, total: int | None) -> None:
        nonlocal batch
        ids = " ".join(f"k-{number}-{batch}-{i}" for i in range(4))
        os.write(into, f"{ids}\n".encode())
        batch += 1

    records = [
        {
            "memory_id": f"k-{number}-{i // 4}-{i % 4}",
            "content": f"note {number} {i} has some words. it has a second sentence. and then a third one {i}",
        }
        for i in range(400)
    ]
    store.remember_many(records, batch_size=4, progress=acknowledge)


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    globals()[what](*arguments)
