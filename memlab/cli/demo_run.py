"""What `memlab demo` does: a store of the sample, built and queried before one's eyes."""

from __future__ import annotations

import hashlib
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from memlab.cached import cache_home
from memlab.cli.screen import console, plain, print_recall
from memlab.cli.session import encoder_choice, waiting
from memlab.errors import EncoderError, InvalidValue, MemlabError
from memlab.interchange.json_text import json_text
from memlab.retrieval import HybridRetriever, profile
from memlab.sample_data import Sample, SampleQuery, sample
from memlab.store import AUTO, MemoryStore

_QUESTION = "how do we notice that a battery is about to die"
_BATCH = 32  # small, so that the bar moves


@dataclass(frozen=True)
class Scene:
    """One recall of the demo: what it shows, which queries may stand for it (best first), what to look at."""

    title: str
    tests: str
    queries: tuple[str, ...]
    look_at: str
    recency: tuple[bool, ...] = (False,)


SCENES = (
    Scene(
        "An exact identifier",
        "identifier",
        ("q-035", "q-126", "q-003"),
        "To a model an error code is a heap of letters; the keyword channel finds it exactly.",
    ),
    Scene(
        "Other words for the same thing",
        "paraphrase",
        ("q-039", "q-102", "q-129"),
        "The answer says it in other words; it is the vector channel that puts it first.",
    ),
    Scene(
        "A fact buried in a long note",
        "buried fact",
        ("q-074", "q-077", "q-014"),
        "One sentence among many does not move the vector of the whole note. Its own passage is nearer, and only the "
        "better of the two is counted.",
    ),
    Scene(
        "What holds now",
        "latest decision",
        ("q-142", "q-049", "q-053", "q-022"),
        "Decisions get reversed, and the old ones read just as well. Compare without and with the recency boost.",
        (False, True),
    ),
    Scene(
        "Another language",
        "multilingual",
        ("q-087", "q-027", "q-057"),
        "all-MiniLM-L6-v2 was trained on English; in other languages it leans on names, numbers and shared words. A "
        "multilingual model is one `memlab reembed --encoder` away.",
    ),
    Scene(
        "A filter",
        "filter",
        ("q-118", "q-148", "q-059"),
        "Filters act before the best are taken: nothing outside them uses up a place.",
    ),
)


def run(path: Path | None, encoder: str | None, limit: int) -> None:
    """Build the store and play the scenes.

    Parameters
    ----------
    path : Path or None
        From ``--db``. MEMLAB_DB does not count: it names the store that somebody works with.
    encoder : str or None
        The name from ``--encoder``.
    limit : int
        Hits a recall.
    """
    out, data = console(), sample()
    path = path or _demo_path(data, encoder)
    with _open(path, data, encoder) as store:
        _print_opening(out, data, path)
        reason = _build(out, store, data)
        if reason:
            out.print(plain(f"Keywords alone: {reason.splitlines()[0]}; `memlab doctor` says more.", "yellow"))
        retriever = HybridRetriever(store)
        for number, scene in enumerate(SCENES, 1):
            _play(out, retriever, data, number, scene, limit)
        _print_figures(out, retriever, data, keywords_alone=bool(reason))
    _print_ending(out, path)


# -- the store -------------------------------------------------------------------------------------------------------


def _demo_path(data: Sample, encoder: str | None) -> Path:
    """A file for this very sample and encoder in the cache folder, or in a temporary one if that cannot be written."""
    text = json_text([encoder or "minilm", *data.records])
    name = f"demo-{hashlib.sha256(text.encode('utf-8')).hexdigest()[:8]}.db"
    folder = cache_home()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            return folder / name
    except OSError:
        return Path(tempfile.mkdtemp(prefix="memlab-demo-")) / name


def _open(path: Path, data: Sample, encoder: str | None) -> MemoryStore:
    ids = {record["memory_id"] for record in data.records}
    if path.exists() and path.stat().st_size:
        with MemoryStore(path, read_only=True) as present:
            foreign = [memory.memory_id for memory in present.find(trashed=None) if memory.memory_id not in ids]
        if foreign:
            raise InvalidValue(
                f"{path} holds memories of its own ({foreign[0]} is one of {len(foreign):,}); the demo wants a store "
                "for itself: name a file that does not exist, or leave --db out"
            )
    return MemoryStore(path, AUTO if encoder is None else encoder_choice(encoder))


def _build(out: Console, store: MemoryStore, data: Sample) -> str:
    """Fill the store; returns why there are no vectors, if there are none."""
    reason = ""
    try:
        with waiting("loading the encoder"):
            name = store.encoder().name
        _prepare(out, store)
        with waiting("loading the encoder"):
            store.encode_query("warm up")
    except EncoderError as error:
        name, reason = "no encoder", str(error)
    figures = store.stats()
    complete = figures.memories == len(data.records)
    if complete and (not figures.pending or reason):
        out.print(plain("The store is complete from an earlier run.", "dim"))
        return reason
    with _Bar(f"remembering with {name}", len(data.records)) as advance:
        store.remember_many(data.records, batch_size=_BATCH, progress=advance)
    if not reason and store.stats().pending:
        with _Bar(f"embedding with {name}", figures.pending) as advance:
            store.embed_pending(batch_size=_BATCH, progress=advance)
    return reason


def _prepare(out: Console, store: MemoryStore) -> None:
    """Make the graph of the fast path, once a machine: it takes less time than the demo saves by it."""
    from memlab.encoders import MiniLM

    encoder = store.encoder()
    if not isinstance(encoder, MiniLM):
        return
    with waiting("preparing the encoder, once"):
        done = encoder.try_to_prepare()
    if isinstance(done, EncoderError):
        out.print(plain(f"The slower path of the encoder is used: {str(done).splitlines()[0]}", "yellow"))
    elif done is not None:
        out.print(plain(f"The encoder's fast path was prepared in {done.seconds:.1f} s, once: {done.path}", "dim"))


class _Bar:
    """A bar on a terminal; nothing where nobody looks."""

    def __init__(self, label: str, total: int) -> None:
        err = console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=err, disable=not err.is_terminal)
        self._task = self._progress.add_task(label, total=total)

    def __enter__(self) -> Any:
        self._progress.start()
        return lambda done, total: self._progress.update(self._task, completed=done)

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


# -- what is shown ---------------------------------------------------------------------------------------------------


def _print_opening(out: Console, data: Sample, path: Path) -> None:
    out.print(plain("memlab: the memory of an AI assistant, seen step by step", "bold"))
    projects = {record.get("project") for record in data.records} - {None}
    moment = f"{data.now.day} {data.now:%B %Y}"
    out.print(
        plain(
            f"{len(data.records)} developer memories of {len(projects)} invented projects, up to {moment}. Each recall "
            "asks three channels (keyword, vector, passage); the bar shows what each gave to a hit's score."
        )
    )
    out.print(plain(f"store: {path}", "dim"))


def chosen_query(queries: Iterable[SampleQuery], scene: Scene) -> SampleQuery | None:
    """The first of a scene's queries that is there and tests what the scene shows, or any other that does."""
    fitting = {query.query_id: query for query in queries if query.tests == scene.tests}
    named = (fitting[query_id] for query_id in scene.queries if query_id in fitting)
    return next(named, None) or next(iter(fitting.values()), None)


def _play(out: Console, retriever: HybridRetriever, data: Sample, number: int, scene: Scene, limit: int) -> None:
    query = chosen_query(data.queries, scene)
    if query is None:
        return
    out.print()
    out.print(Rule(Text(f"{number} · {scene.title}", "bold"), align="left", style="dim"))
    out.print(plain(scene.look_at, "italic"))
    for boost in scene.recency:
        if len(scene.recency) > 1:
            out.print(plain(f"\n{'With' if boost else 'Without'} the recency boost:", "bold"))
        answer = retriever.recall(query.text, limit=limit, now=data.now, filters=query.filters, recency_boost=boost)
        print_recall(out, answer, marks=_marks(query.judgments))
        wanted = [name for name, grade in query.judgments.items() if grade == 2]
        if not set(wanted) & set(answer.ids):
            places = [place.rank for name in wanted if (place := answer.trace.place(name))]
            where = f"comes {min(places)} of {len(answer.trace.ranked)}" if places else "is in no channel's list"
            out.print(plain(f"\n    the answer {where}", "yellow"))


def _marks(judgments: Mapping[str, int]) -> dict[str, Text]:
    words = {2: ("✓ the answer", "green"), 1: ("+ helps", "green"), 0: ("✗ not it", "red")}
    return {memory_id: Text(*words[grade]) for memory_id, grade in judgments.items() if grade in words}


def _print_figures(out: Console, retriever: HybridRetriever, data: Sample, *, keywords_alone: bool) -> None:
    variants = {"all three channels": retriever}
    if not keywords_alone:
        variants |= {
            "keyword alone": retriever.only("keyword"),
            "vector alone": retriever.only("vector"),
            "the published recipe": profile("classic", retriever.store),
        }
    try:
        with waiting("measuring all labelled queries"):
            rows = recall_figures(variants, data)
    except MemlabError as error:
        out.print(plain(f"no figures: {error}", "yellow"))
        return
    out.print()
    judged = sum(1 for query in data.queries if query.relevant)
    out.print(Rule(Text(f"All {judged} labelled queries, measured just now", "bold"), align="left", style="dim"))
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for name in ("", "recall@1", "recall@5"):
        table.add_column(name, justify="left" if not name else "right")
    for name, (at_1, at_5) in rows.items():
        table.add_row("keyword alone" if keywords_alone else name, f"{at_1:.3f}", f"{at_5:.3f}")
    out.print(table)
    out.print(plain("recall@k: the share of a query's relevant memories among its first k hits, on average", "dim"))


def recall_figures(variants: Mapping[str, HybridRetriever], data: Sample) -> dict[str, tuple[float, float]]:
    """Mean recall@1 and recall@5 over the labelled queries, by variant; every query is encoded once."""
    judged = [query for query in data.queries if query.relevant]
    store = next(iter(variants.values())).store
    try:
        vectors = list(store.encode_queries([query.text for query in judged]))
    except EncoderError:
        vectors = [None] * len(judged)
    figures: dict[str, tuple[float, float]] = {}
    for name, retriever in variants.items():
        sums = {1: 0.0, 5: 0.0}
        for query, vector in zip(judged, vectors, strict=True):
            found = retriever.gather(query.text, filters=query.filters, query_vector=vector)
            ids = retriever.rank(found, limit=5, now=data.now).ids
            for k in sums:
                sums[k] += len(query.relevant & set(ids[:k])) / len(query.relevant)
        figures[name] = (sums[1] / max(1, len(judged)), sums[5] / max(1, len(judged)))
    return figures


def _print_ending(out: Console, path: Path) -> None:
    quoted = shlex.quote(str(path)) if sys.platform != "win32" else f'"{path}"'
    call = how_to_call()
    tries = [
        ("ask it yourself", f'{call} recall --db {quoted} --explain "{_QUESTION}"'),
        ("look around", f"{call} list --db {quoted} --category decision"),
        ("begin a store of your own", f'{call} remember "Webhooks retry with full jitter." --project billing'),
        ("see what is installed", f"{call} doctor"),
    ]
    if (Path(__file__).parents[2] / "Makefile").is_file():
        tries.append(("go on in a notebook", "make lab"))
    out.print()
    out.print(Rule(Text("What to try next", "bold"), align="left", style="dim"))
    for what, line in tries:
        out.print(plain(f"# {what}", "dim"))
        out.print(plain(f"  {line}"), soft_wrap=True)
    out.print(plain("# or in Python", "dim"))
    for line in (
        "import memlab",
        f"store = memlab.MemoryStore({str(path)!r})",
        "retriever = memlab.HybridRetriever(store)",
        f'recall = retriever.recall("{_QUESTION}", recency_boost=True, now=memlab.sample().now)',
        "print(recall); print(recall.explain())",
    ):
        out.print(plain(f"  {line}"), soft_wrap=True)


def how_to_call() -> str:
    """What to type for this very `memlab`: a virtual environment's need not be on the path."""
    name = "memlab.exe" if sys.platform == "win32" else "memlab"
    own = Path(sys.executable).with_name(name)
    if own.is_file() and own.is_relative_to(Path.cwd()):
        return shlex.quote(str(own.relative_to(Path.cwd())))
    if (found := shutil.which("memlab")) is not None and Path(found) == own:
        return "memlab"
    if not own.is_file():
        return f"{shlex.quote(sys.executable)} -m memlab.cli"
    return shlex.quote(str(own))
