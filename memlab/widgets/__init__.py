"""Widgets: live views of a recall, a store or a list of queries. What they show is computed below them."""
