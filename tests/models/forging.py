"""Model files made by hand: any content, with every size and checksum right."""

import io

from gnomon.models.archive import write_archive
from gnomon.models.document import write_document
from gnomon.models.file import _serialised
from gnomon.models.plain import Packed, pack


def taken_apart(model):
    """What a model's file holds: the content as JSON, and arrays by name."""
    packed = Packed()
    content = pack(model, packed)
    return content, packed.arrays


def put_together(content, arrays):
    """The bytes of a file with this content."""
    octets = _serialised(arrays)
    file = io.BytesIO()
    write_archive(file, write_document(content, octets), octets)
    return file.getvalue()
