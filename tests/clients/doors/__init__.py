"""The ways into the broker's SQL: each module is one of them, and asks what the others ask.

A door is a class with a `name`, `ask(sql, kinds, before)` for the rows of a statement, `refusal(sql)` for the text of the error that a
statement must end with, and `shown(value, kind)` for what the door makes of a value. What is expected is written once, as Python's values;
`kind` names the type of a column:

| kind | is |
| --- | --- |
| `int` `float` `bool` `text` `date` | what it says |
| `bytes` | binary |
| `time` | a timestamp without a zone |
| `zoned` | a timestamp with one |
| `nested` | a list or a struct, of lists and dictionaries |
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Answer:
    """The names of the columns, and the rows as a door shows them."""

    names: list[str]
    rows: list[tuple]


def text_of(value: bytes) -> str:
    """Bytes as JSON has them: the text that they are, or `\\x` and hexadecimal digits."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return "\\x" + value.hex()
    return text if all(char >= " " and char != "\x7f" for char in text) else "\\x" + value.hex()


def nested(value: object) -> object:
    """Lists and structs as JSON has them."""
    if isinstance(value, bytes):
        return text_of(value)
    if isinstance(value, list):
        return [nested(one) for one in value]
    if isinstance(value, dict):
        return {key: nested(one) for key, one in value.items()}
    return value
