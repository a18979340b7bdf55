"""One file of a whole state, as other programs read it: safetensors, or NumPy's npz.

Knows both formats to the byte, so that equal states make equal files; must not know where words came from.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable, Mapping
from typing import Final

from evidence.canonical import dumps
from orchestrator.qualify.command.tensors import Tensor, Tensors

_ALIGNED = 8
_NPY_ALIGNED = 64
_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # a zip's earliest time: when a file was made is no part of the state
_NPY_TYPES: Final = {
    "BOOL": "|b1",
    "U8": "|u1",
    "I8": "|i1",
    "U16": "<u2",
    "I16": "<i2",
    "F16": "<f2",
    "U32": "<u4",
    "I32": "<i4",
    "F32": "<f4",
    "U64": "<u8",
    "I64": "<i8",
    "F64": "<f8",
    "C64": "<c8",
}

Metadata = Mapping[str, str]


class FormatError(ValueError):
    """A format that has no place for what is to be written."""


def safetensors_bytes(tensors: Tensors, metadata: Metadata) -> bytes:
    """A safetensors file: tensors in the order given, one after the other."""
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    at = 0
    for name, tensor in tensors.items():
        end = at + len(tensor.data)
        header[name] = {"data_offsets": [at, end], "dtype": tensor.dtype, "shape": list(tensor.shape)}
        at = end
    text = dumps(header)
    text += b" " * (-len(text) % _ALIGNED)
    return b"".join((struct.pack("<Q", len(text)), text, *(tensor.data for tensor in tensors.values())))


def npz_bytes(tensors: Tensors, metadata: Metadata) -> bytes:
    """A npz file: an array for each tensor, uncompressed; metadata as `key=value` lines of the zip's comment.

    Raises:
        FormatError: NumPy has no such type.
    """
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = "\n".join(f"{key}={value}" for key, value in sorted(metadata.items())).encode()
        for name, tensor in tensors.items():
            entry = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            archive.writestr(entry, _npy_header(name, tensor) + tensor.data)
    return held.getvalue()


def _npy_header(name: str, tensor: Tensor) -> bytes:
    """Format 1.0 of an array file: padded so that the words begin at a multiple of 64 bytes."""
    if tensor.dtype not in _NPY_TYPES:
        raise FormatError(
            f"NumPy has no words of this type (got {tensor.dtype} of {name}, expected .safetensors)"
        )
    kind = _NPY_TYPES[tensor.dtype]
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tensor.shape!r}, }}"
    before = len(_NPY_MAGIC) + 2
    text += " " * (-(before + len(text) + 1) % _NPY_ALIGNED) + "\n"
    return _NPY_MAGIC + struct.pack("<H", len(text)) + text.encode("ascii")


FORMATS: Final[Mapping[str, Callable[[Tensors, Metadata], bytes]]] = {
    ".safetensors": safetensors_bytes,
    ".npz": npz_bytes,
}
