"""The peers' table as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_COLUMNS = (
    ("vector", "vectors, ms"),
    ("hybrid", "hybrid, ms"),
    ("text", "from text, ms"),
    ("exact_ten", "exact ten"),
    ("ingest", "rows/s in"),
    ("cold_ms", "cold start, ms"),
    ("mb", "MB"),
    ("recall_at_5", "recall@5"),
)


def markdown(result: Mapping[str, Any]) -> str:
    """A heading and a table for every size, then what could not be run, versions and the machine.

    Parameters
    ----------
    result : mapping
        As :mod:`run` writes it to JSON.
    """
    parts = []
    for size in result["sizes"]:
        parts += [f"**{size['name']}** (median / 95th percentile)", "", *_rows(size["peers"], result["labelled"]), ""]
    judged = result["labelled"]
    if judged["peers"]:
        parts += [
            f"recall@5: {judged['asked']} labelled queries of {judged['name']} ({judged['count']:,} memories).",
            "",
        ]
    if missing := {**result["missing"]}:
        parts += [f"Not run: {'; '.join(f'{name} ({why})' for name, why in missing.items())}.", ""]
    versions = "; ".join(f"{name} {version}" for name, version in result["versions"].items())
    parts += [f"Versions: {versions}.", "", f"Machine: {result['machine']}."]
    if result["load"]:
        parts += ["", f"The machine had other work (a load of {result['load']:.1f}): read the ratios."]
    return "\n".join(parts) + "\n"


def _rows(peers: Mapping[str, Mapping[str, Any]], judged: Mapping[str, Any]) -> list[str]:
    filled = {
        name: {**row, "recall_at_5": judged["peers"].get(name, {}).get("recall_at_5")} for name, row in peers.items()
    }
    used = [(key, head) for key, head in _COLUMNS if any(row.get(key) is not None for row in filled.values())]
    lines = ["| | " + " | ".join(head for _, head in used) + " |", "|---|" + "---:|" * len(used)]
    for name, row in filled.items():
        cells = [_cell(key, row.get(key)) for key, _ in used]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
        if row.get("note"):
            lines[-1] = f"| {name}: {row['note']} | " + " | ".join(cells) + " |"
    return lines


def _cell(key: str, value: Any) -> str:
    if value is None:
        return "–"
    if key in ("exact_ten", "recall_at_5"):
        return f"{value:.3f}"
    if isinstance(value, Mapping):
        return f"{number(value['p50'])} / {number(value['p95'])}"
    return number(value)


def number(value: float) -> str:
    """About three figures."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(values: Sequence[float]) -> dict[str, float] | None:
    """Median, 95th percentile, the least and number of runs."""
    import numpy as np

    if not values:
        return None
    p50, p95 = np.percentile(values, [50, 95]).tolist()
    return {"p50": p50, "p95": p95, "least": min(values), "runs": len(values)}
