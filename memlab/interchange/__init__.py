"""Memories out of a store and into one, in forms that other programs read."""

from memlab.interchange.jsonl import ImportResult, export_jsonl, import_jsonl

__all__ = ["ImportResult", "export_jsonl", "import_jsonl"]
