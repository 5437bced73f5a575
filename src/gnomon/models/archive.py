"""The archive: exactly two uncompressed members that fill the file without gaps.

Any zip program opens it. Reading is stricter than zip: no compression (so nothing can
expand), nothing hidden between or after the members, no other names, and every size is checked
against the size of the file before a byte is read.
"""

import os
import struct
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

from gnomon.budget import readable_bytes
from gnomon.errors import TooLargeError
from gnomon.models.fields import UnfitError

__all__ = ["ARRAYS", "DOCUMENT", "read_archive", "write_archive"]

DOCUMENT, ARRAYS = "model.json", "arrays.safetensors"
MEMBERS = [DOCUMENT, ARRAYS]
LARGEST_DOCUMENT = 2**26  # bytes of JSON, which needs many times as much memory when parsed
FIXED_DATE = (1980, 1, 1, 0, 0, 0)  # fixed date: the same model always gives the same file

LOCAL_HEADER = struct.Struct("<4s22sHH")  # …, lengths of the name and of the extra field
END = struct.Struct("<4sHHHHIIH")  # …, members, size and offset of the directory, comment
END_64 = struct.Struct("<4sQHHIIQQQQ")
LOCATOR_64 = struct.Struct("<4sIQI")
LONGEST_LIST = 512  # bytes: two members never need more in the central directory
CHANGED = "it was packed or changed by another program"
CUT = "it is cut off, or something was added to it"


def write_archive(path: Path, document: bytes, arrays: bytes) -> None:
    """Write both members, one after the other."""
    if len(document) > LARGEST_DOCUMENT:
        raise TooLargeError(
            f"The names and parameters of this model are {readable_bytes(len(document))} of text; "
            f"a model file holds {readable_bytes(LARGEST_DOCUMENT)}. Shorten the columns' names."
        )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in zip(MEMBERS, (document, arrays), strict=True):
            member = zipfile.ZipInfo(name, FIXED_DATE)
            member.external_attr = 0o644 << 16
            archive.writestr(member, content)


def read_archive(file: BinaryIO) -> tuple[bytes, bytes]:
    """Read `model.json` and `arrays.safetensors`; raise UnfitError for anything else."""
    size = file.seek(0, os.SEEK_END)
    listed = _start_of_list(file, size)
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OSError) as error:
        raise UnfitError(f"its list of members cannot be read ({error})") from None
    _refuse_foreign(members)
    start = 0
    spans = []
    for member in members:
        begin = _begin(file, member, start)
        start = begin + member.file_size
        if start > listed:
            raise UnfitError(CUT)
        spans.append((begin, member))
    if start != listed:
        raise UnfitError("it holds bytes that belong to no member")
    if members[0].file_size > LARGEST_DOCUMENT:
        raise UnfitError("its model.json is too long")
    document, arrays = (_content(file, begin, member) for begin, member in spans)
    return document, arrays


def _start_of_list(file: BinaryIO, size: int) -> int:
    """Offset of the end of the members, if the central directory is as short as ours."""
    if size < END.size:
        raise UnfitError(CUT)
    file.seek(size - END.size)
    magic, *_, count, length, _, comment = END.unpack(file.read(END.size))
    if magic != b"PK\x05\x06" or comment:
        raise UnfitError(CUT)
    end = size - END.size
    at = max(0, end - LOCATOR_64.size - END_64.size)
    file.seek(at)
    tail = file.read(end - at)
    if tail[-LOCATOR_64.size :].startswith(b"PK\x06\x07"):  # zip64, for more than 4 GB
        end -= LOCATOR_64.size + END_64.size
        if end < 0 or LOCATOR_64.unpack(tail[END_64.size :])[2] != end:
            raise UnfitError(CHANGED)
        magic, *_, count, length, _ = END_64.unpack(tail[: END_64.size])
        if magic != b"PK\x06\x06":
            raise UnfitError(CHANGED)
    if count > len(MEMBERS) or length > min(LONGEST_LIST, end):
        raise UnfitError(f"it holds other things than {DOCUMENT} and {ARRAYS}")
    return int(end - length)


def _refuse_foreign(members: list[zipfile.ZipInfo]) -> None:
    names = [member.filename for member in members]
    for name in names:
        if name.startswith(("/", "\\")) or ".." in name or ":" in name:
            raise UnfitError(f"it holds {name[:80]!r}, which points out of it")
        if name not in MEMBERS:
            raise UnfitError(f"it holds {name[:80]!r}, which does not belong to a model")
    if names != MEMBERS:
        raise UnfitError(f"it does not hold {DOCUMENT} and {ARRAYS}")
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED:
            raise UnfitError(f"its {member.filename} is compressed, which a model's never is")
        if member.flag_bits or member.compress_size != member.file_size:
            raise UnfitError(CHANGED)


def _begin(file: BinaryIO, member: zipfile.ZipInfo, start: int) -> int:
    """Offset of a member's data, if its header is at `start`."""
    file.seek(start)
    header = file.read(LOCAL_HEADER.size)
    if member.header_offset != start or len(header) < LOCAL_HEADER.size:
        raise UnfitError(CHANGED)
    magic, _, name, extra = LOCAL_HEADER.unpack(header)
    if magic != b"PK\x03\x04" or file.read(name) != member.filename.encode():
        raise UnfitError(CHANGED)
    return start + LOCAL_HEADER.size + int(name) + int(extra)


def _content(file: BinaryIO, begin: int, member: zipfile.ZipInfo) -> bytes:
    file.seek(begin)
    content = file.read(member.file_size)
    if len(content) != member.file_size:
        raise UnfitError(CUT)
    if zlib.crc32(content) != member.CRC:
        raise UnfitError(f"its {member.filename} is damaged")
    return content
