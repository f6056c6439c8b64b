"""A folder of files of many kinds, made from code."""

import bz2
import gzip
import io
import lzma
import pickle
import py_compile
import sqlite3
import struct
import sys
import tarfile
import wave
import zipfile
import zlib
from pathlib import Path

import numpy as np

from spec_tests.models.texts import TEXTS


def make_folder(folder: Path) -> list[Path]:
    """Fill ``folder`` with files of many kinds, and return their paths."""
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name, data in binary_files().items():
        (folder / name).write_bytes(data)
    py_compile.compile(str(folder / "program.py"), cfile=str(folder / "program.pyc"), doraise=True)
    with sqlite3.connect(folder / "data.sqlite") as database:
        database.execute("CREATE TABLE numbers (n INTEGER, square INTEGER)")
        database.executemany("INSERT INTO numbers VALUES (?, ?)", [(n, n * n) for n in range(50)])
    database.close()
    return sorted(path for path in folder.iterdir() if path.is_file())


def binary_files() -> dict[str, bytes]:
    text = TEXTS["words.txt"].encode()
    array = io.BytesIO()
    np.save(array, np.arange(100, dtype=np.float32).reshape(10, 10))
    arrays = io.BytesIO()
    np.savez(arrays, first=np.arange(10), second=np.ones(5))
    return {
        "picture.png": png(),
        "picture.gif": gif(),
        "picture.bmp": bmp(),
        "archive.zip": zipped({"a.txt": text, "b/c.txt": text[:50]}),
        "program.jar": zipped(
            {"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\n", "A.class": b"\xca\xfe\xba\xbe" + bytes(60)}
        ),
        "text.gz": gzip.compress(text, mtime=0),
        "text.bz2": bz2.compress(text),
        "text.xz": lzma.compress(text),
        "text.zlib": zlib.compress(text, 9),
        "archive.tar": tarred({"a.txt": text, "b.txt": text[:99]}),
        "page.pdf": pdf(),
        "sound.wav": wav(),
        "python": Path(sys.executable).resolve().read_bytes()[:200_000],
        "data.pickle": pickle.dumps({"numbers": list(range(100)), "text": "hello", "nested": {"a": (1, 2)}}),
        "array.npy": array.getvalue(),
        "arrays.npz": arrays.getvalue(),
        "random.bin": np.random.default_rng(716).bytes(5000),
        "seven-random.bin": bytes([200, 201, 202, 203, 204, 205, 206]),
        "zeros.bin": bytes(3000),
        "utf-16.txt": TEXTS["words.txt"].encode("utf-16"),
        "latin-1.txt": ("Überraschend schöne Grüße aus Köln. " * 40).encode("latin-1"),
    }


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    size = 16
    rows = b"".join(b"\0" + bytes(range(3 * size)) for _ in range(size))
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def gif() -> bytes:
    head = b"GIF89a" + struct.pack("<HHBBB", 2, 2, 0x80, 0, 0) + bytes([0, 0, 0, 255, 255, 255])
    return head + b"," + struct.pack("<HHHHB", 0, 0, 2, 2, 0) + b"\x02\x03\x44\x02\x05\x00;"


def bmp() -> bytes:
    pixels = bytes(range(192))
    head = struct.pack("<IiiHHIIiiII", 40, 8, 8, 1, 24, 0, len(pixels), 2835, 2835, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(pixels), 0, 0, 54) + head + pixels


def zipped(files: dict[str, bytes]) -> bytes:
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return result.getvalue()


def tarred(files: dict[str, bytes]) -> bytes:
    result = io.BytesIO()
    with tarfile.open(fileobj=result, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return result.getvalue()


def wav() -> bytes:
    result = io.BytesIO()
    with wave.open(result, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes((np.sin(np.arange(4000) / 5) * 9000).astype("<i2").tobytes())
    return result.getvalue()


def pdf() -> bytes:
    return b"""%PDF-1.4
1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj
3 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R >> endobj
4 0 obj << /Length 44 >> stream
BT /F1 24 Tf 50 100 Td (Hello, world!) Tj ET
endstream endobj
xref
0 5
0000000000 65535 f
trailer << /Root 1 0 R /Size 5 >>
startxref
9
%%EOF
"""
