"""Addresses of databases: which paths are addresses, and how an address is shown without its password."""

import re

ADDRESS = re.compile(r"(duckdb|sqlite|postgres|postgresql)(\+\w+)?://", re.IGNORECASE)
OUT_TABLE = "table:"
"""What `--out` begins with if the results go to a new table of the database."""
CREDENTIALS = re.compile(r"(\w[\w+]*://[^\s:/@]*):.*@|(password=)[^&\s]+", re.IGNORECASE)
"""Passwords in addresses. A password that should have been escaped may hold any character, so as much as possible of a
line is taken for one."""


def is_database(path: str) -> bool:
    """Return whether a path is the address of a database."""
    return ADDRESS.match(path) is not None


def masked(text: str) -> str:
    """Return a text without the passwords of addresses in it."""
    return CREDENTIALS.sub(lambda found: f"{found[1]}:***@" if found[1] else f"{found[2]}***", text)
