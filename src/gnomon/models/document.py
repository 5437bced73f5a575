"""`model.json`: the contents of the archive in readable form, and its checksums.

::

    {"format": "gnomon model", "version": 3, "gnomon": "0.2.0",
     "members": {"arrays.safetensors": {"bytes": 1234, "sha256": "…"}},
     "content": …,          the model; arrays by name
     "checksum": "…"}       SHA-256 of this text with 64 zeros in its place

Checksums detect damage. They do not authenticate a file: both can be changed together.
"""

import hashlib
import json
from importlib.metadata import version as version_of
from typing import Any, NoReturn

from gnomon.models.archive import ARRAYS
from gnomon.models.fields import UnfitError
from gnomon.models.migrations import MIGRATIONS, VERSION

__all__ = ["read_document", "write_document"]

FORMAT = "gnomon model"
ZEROS = b"0" * 64
AFTER = b'"\n}\n'
DAMAGED = "it is damaged: its checksum does not match"


def write_document(content: Any, arrays: bytes) -> bytes:
    """Write the text of `model.json`."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "gnomon": version_of("gnomon"),
        "members": {ARRAYS: _summary(arrays)},
        "content": content,
        "checksum": ZEROS.decode(),
    }
    # Not indented: names would take a line each. One key per line is readable enough.
    lines = ",\n".join(
        f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}"
        for key, value in document.items()
    )
    text = f"{{\n{lines}\n}}\n".encode("ascii")
    end = len(text) - len(AFTER)
    return text[: end - 64] + hashlib.sha256(text).hexdigest().encode() + AFTER


def read_document(text: bytes, arrays: bytes) -> Any:
    """Return the content, migrated to the current version, after verifying every checksum."""
    end = len(text) - len(AFTER)
    given = text[end - 64 : end]
    plain = text[: end - 64] + ZEROS + text[end:]
    if end < 64 or hashlib.sha256(plain).hexdigest().encode() != given:
        raise UnfitError(DAMAGED)
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise UnfitError(f"its model.json cannot be read ({error})") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UnfitError("its model.json has another format")
    version = document.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise UnfitError("its format has no version")
    if version > VERSION:
        by = str(document.get("gnomon"))[:20]
        raise UnfitError(
            f"it is of format {version} (gnomon {by}), but gnomon {version_of('gnomon')} reads "
            f"formats up to {VERSION}",
            "Update gnomon.",
        )
    members = document.get("members")
    if not isinstance(members, dict) or members.get(ARRAYS) != _summary(arrays):
        raise UnfitError(DAMAGED)
    while version < VERSION:
        document, version = MIGRATIONS[version](document), version + 1
    if "content" not in document:
        raise UnfitError("it has no content")
    return document["content"]


def _summary(member: bytes) -> dict[str, Any]:
    return {"bytes": len(member), "sha256": hashlib.sha256(member).hexdigest()}


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")
