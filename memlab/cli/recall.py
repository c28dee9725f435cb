"""`memlab recall`."""

from __future__ import annotations

import contextlib
import re
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from memlab.cli.session import Session, command, filter_options, filters_from, json_option, time_from, waiting

if TYPE_CHECKING:
    from memlab.retrieval import HybridRetriever
    from memlab.store import MemoryStore


@command("recall", short_help="Find memories, and see what each channel gave.")
@click.argument("query", nargs=-1, required=True)
@click.option("-n", "--limit", type=int, default=5, show_default=True, help="Most hits.")
@filter_options
@click.option("--recency/--no-recency", default=False, help="Give newer memories their bonus. [default: no]")
@click.option("--now", metavar="TIME", help="Count ages from this day or time. [default: the present]")
@click.option("--profile", metavar="NAME", help="default, classic, classic-no-passages, keyword or vector.")
@click.option("--k", type=float, help="Fuse by reciprocal ranks with this constant; 60 in the paper.")
@click.option("--keyword-only", is_flag=True, help="Ask the keyword channel alone; no model is loaded.")
@click.option("--explain", is_flag=True, help="Add the sum behind each score, in a sentence.")
@click.option(
    "--why-not", metavar="ID", help="Say why this memory is not among the hits, and what would bring it back."
)
@json_option
def recall(session: Session, query: tuple[str, ...], **options: Any) -> None:
    """Find the memories that answer QUERY, and show what each channel gave.

    QUERY is plain text, quoted or not: nothing in it is query syntax.
    """
    filters = filters_from(options)
    with session.read() as store:
        retriever = _retriever(store, options)
        with waiting("loading the encoder"):
            _load(retriever)
        with waiting("recalling"):
            answer = retriever.recall(
                " ".join(query),
                limit=options["limit"],
                recency_boost=options["recency"],
                now=time_from(options["now"], "--now"),
                filters=filters,
            )
        from memlab.cli.screen import console, plain, print_json, print_recall

        missing = answer.why_not(options["why_not"]) if options["why_not"] else None
        if options["as_json"]:
            print_json({**answer.as_dict(), **({"why_not": asdict(missing)} if missing else {})})
            return
        print_recall(console(), answer, explain=options["explain"])
        if missing:
            console().print(plain(f"\n{_as_typed(str(missing))}"))


def _as_typed(advice: str) -> str:
    """What brings a memory back, as it is done here and not in Python."""
    return re.sub(r"restore\('([^']+)'\)", r"`memlab restore \1`", re.sub(r"\blimit=(\d+)", r"-n \1", advice))


def _retriever(store: MemoryStore, options: dict[str, Any]) -> HybridRetriever:
    """The default, as in Python and over MCP, unless something else is asked for."""
    from memlab.retrieval import RRF, profile

    retriever = profile(options["profile"] or "default", store)
    if options["k"] is not None:
        fusion = retriever.fusion if isinstance(retriever.fusion, RRF) else RRF()
        retriever = retriever.replace(fusion=replace(fusion, k=options["k"]))
    return retriever.only("keyword") if options["keyword_only"] else retriever


def _load(retriever: HybridRetriever) -> None:
    """Load the model ahead, so that the time shown is that of the recall; the recall itself says what is missing."""
    from memlab.errors import EncoderError

    store = retriever.store
    if store.encoder_stamp is not None and any(channel.needs_vector for channel in retriever.channels):
        with contextlib.suppress(EncoderError):
            store.encode_query("warm up")


COMMANDS = (recall,)
