"""The store as an MCP server: for a notebook, for the command line, and for tests without either.

Everything here stands above retrieval and the store; the SDK is imported by ``app``, ``stdio`` and ``http`` alone.
"""
