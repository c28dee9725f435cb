"""Figures as a table in a terminal, and as plain JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from memlab.bench.machine import told
from memlab.bench.measure import StoreFigures
from memlab.bench.timing import Figure
from memlab.cli.screen import console, plain, say

SCHEMA = 1
_GROWTH = ("vector", "keyword", "recall_vector", "recall_filtered", "recall", "open", "cold", "memory")


def as_json(machine: dict[str, Any], stores: Sequence[StoreFigures]) -> dict[str, Any]:
    """All figures; the number ``schema`` changes with the layout."""
    return {
        "schema": SCHEMA,
        "machine": machine,
        "stores": [store.as_dict() for store in stores],
        "interrupted": any(store.interrupted for store in stores),
    }


def print_report(machine: dict[str, Any], stores: Sequence[StoreFigures], *, growth: bool = False) -> None:
    """A table a store; or with ``growth`` one table with a column a store, of medians."""
    out = console()
    out.print(plain(told(machine), "dim"))
    load, cores = machine["load"], machine["cores"] or 1
    if load is not None and load > cores / 2:
        say(f"the machine had other work (a load of {load:.1f} on {cores} cores): read the ratios, not the times")
    if growth and len(stores) > 1:
        out.print()
        out.print(plain("medians, by number of memories", "bold"))
        out.print(_growth_table(stores))
    else:
        for store in stores:
            out.print()
            parts = [f"{store.memories:,} memories", f"{store.megabytes:,.1f} MB", store.encoder or "no vectors"]
            out.print(plain(store.name, "bold"))
            out.print(plain(", ".join(parts), "dim"))
            out.print(_table(store))
            for line in _footnotes(store):
                out.print(plain(line, "dim"))
    for store in stores:
        for note in store.notes:
            say(f"{store.name}: {note}")


def _table(store: StoreFigures) -> Table:
    compared = any(figure.reference for figure in store.figures)
    kept = any(figure.kept is not None for figure in store.figures)
    table = _bare_table()
    table.add_column("what", overflow="fold")
    heads = [
        "median",
        "95 %",
        "",
        "runs",
        *(["reference", "times better"] if compared else ()),
        *(["kept"] if kept else ()),
    ]
    for head in heads:
        table.add_column(head, justify="left" if head == "unit" else "right", no_wrap=True)
    marks = _marks(store)
    for figure in store.figures:
        row = [number(figure.value.p50), number(figure.value.p95), figure.unit, str(figure.value.runs)]
        if compared:
            reference, ratio = figure.reference, figure.ratio
            row.append(f"{number(reference.p50)} {marks[figure.against]}" if reference else "")
            row.append("" if ratio is None else f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}")
        if kept:
            row.append("" if figure.kept is None else f"{figure.kept:.3f} {marks[figure.kept_of]}")
        table.add_row(plain(figure.label), *(plain(cell) for cell in row))
    return table


def _growth_table(stores: Sequence[StoreFigures]) -> Table:
    table = _bare_table()
    table.add_column("what", overflow="fold")
    table.add_column("", no_wrap=True)
    for store in stores:
        table.add_column(f"{store.memories:,}", justify="right", no_wrap=True)
    for key in _GROWTH:
        found = [store.of(key) for store in stores]
        named = next((figure for figure in found if figure), None)
        if named is not None:
            cells = [number(figure.value.p50) if figure else "" for figure in found]
            table.add_row(
                plain(named.label.split(", filtered")[0]), plain(named.unit), *(plain(cell) for cell in cells)
            )
    return table


def _bare_table() -> Table:
    return Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")


def _marks(store: StoreFigures) -> dict[str, str]:
    """A letter for everything that a figure is compared with."""
    names = dict.fromkeys(
        name
        for figure in store.figures
        for name in (figure.against if figure.reference else "", figure.kept_of if figure.kept is not None else "")
        if name
    )
    return dict(zip(names, "abcdefghijklmnopqrstuvwxyz", strict=False))


def _footnotes(store: StoreFigures) -> list[str]:
    return [f"{mark}: {name}" for name, mark in _marks(store).items()]


def number(value: float) -> str:
    """Three figures, and no more behind the point than say something."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def growth_rows(stores: Sequence[StoreFigures]) -> list[tuple[Figure, list[tuple[int, float]]]]:
    """For a plot: of each quantity its first figure, and (memories, median) for every store that has it."""
    rows = []
    for key in _GROWTH:
        points = [(store.memories, figure) for store in stores if (figure := store.of(key))]
        if points:
            rows.append((points[0][1], [(memories, figure.value.p50) for memories, figure in points]))
    return rows
