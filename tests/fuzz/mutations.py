"""Mutations: damaged and forged copies of the files of the corpus.

In: a seeded generator and the content of a file. Out: other content. Bytes are changed blindly; a model file is also
changed with knowledge of its format, and gets a checksum that fits, so that what lies behind the checksum is reached.
"""

import json
import math
import struct

from ..modelfile.model_files import joined, signed, split

CODES = {"F64": "<d", "F32": "<f", "I64": "<q", "I32": "<i", "U8": "<B"}
"""Types of the arrays of a model file, as `struct` names them."""
FLOATS = [
    0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 5e-324, 1e-300, 1e12, -1e12, 1e30, 3e38, 1e300,
    math.inf, -math.inf, math.nan, math.nextafter(1.0, 0.0),
]  # fmt: skip
INTEGERS = [0, 1, -1, 2, 5, 7, 255, 2**31 - 1, -(2**31), 2**53 + 1, 2**62, -(2**63)]
JSON_VALUES = [
    None, True, False, -1, 0, 1, 2, 3, 100, 10**4, 10**7, 2**31, 2**40, 2**63, 10**30, 10**400,
    1.5, -0.0, 0.5, 1.0, 5e-324, 1e-3, 1e308, "", "a", "x" * 1000, "\ud800", "\0\x1b[2J\n", "<script>", "auto",
    "number", "category", "time", "dropped", "standard", "rank", "orthogonal", "quantile", "F64", "I8",
    [], [1], [0.5, 1.0], ["a", "a"], [2, 2], [-1, 4], [2**62, 2**62], ["standard"] * 3, {}, {"a": 1}, {"a": "drop"},
]  # fmt: skip

TOKENS = [
    b"", b"\0", b"\n", b"\r", b"\r\n", b"\n\n\n", b",", b";", b"\t", b"|", b'"', b'""', b"'", b"\\", b" ", b"#",
    b"1e400", b"-1e400", b"inf", b"-Infinity", b"nan", b"NULL", b"1,5", b"0x10", b"1_000", b"9" * 400, b"-0.0",
    b"9007199254740993", b"18446744073709551617", b"true", b"2024-02-30", b"2024-01-01T00:00:00Z", b"9999-12-31",
    b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\0\0", b"\xed\xa0\x80", b"\xc3", b"\xe2\x80\xa8", b"\xc2\x85",
    b"\x1b[2J", b"=cmd()", b"<script>", b"x" * 5000, b'"' + b"y" * 300, b"a," * 300, b"sep=;\n", b"PAR1", b"PK\3\4",
]  # fmt: skip
"""What has a meaning to a reader of tables, or should have none."""


def changed_bytes(rng, content, tokens=TOKENS, first=0):
    """Return content with some bytes changed, from index `first` on."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        at = rng.randrange(first, len(data) + 1) if len(data) > first else len(data)
        width = rng.choice([1, 1, 2, 4, 8, 30])
        kind = rng.randrange(8)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at : at + width] = rng.randbytes(width)
        elif kind == 2:
            data[at:at] = rng.choice(tokens)
        elif kind == 3:
            data[at : at + width] = rng.choice(tokens)
        elif kind == 4:
            del data[at : at + width * rng.choice([1, 5, 50])]
        elif kind == 5:
            data[at:at] = data[at : at + width * 5] * rng.choice([1, 2, 20])
        elif kind == 6:
            data[at : at + 4] = struct.pack("<i", rng.choice([0, 1, -1, 2**31 - 1, -(2**31), 65536]))
        elif rng.random() < 0.3:
            del data[at:]
        else:
            other = rng.randrange(first, len(data) + 1) if len(data) > first else first
            data[at : at + width] = data[other : other + width]
    return bytes(data)


def spliced(rng, one, other):
    """Return the beginning of one file with the end of another."""
    return one[: rng.randrange(len(one) + 1)] + other[rng.randrange(len(other) + 1) :]


def forged_model(rng, content):
    """Return a model file with some values changed: of its header, its arrays, or its bytes."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        change = rng.choice([_forged_header, _forged_detector, _forged_values, _forged_values, _resized, _changed_bits])
        try:
            content = change(rng, content)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, struct.error, OverflowError):
            continue  # an earlier change left nothing to change here
    return content


def _forged_header(rng, content):
    header, data = split(content)
    return joined(changed_json(rng, header), data)


def _forged_detector(rng, content):
    """Change what the header says of the detector: parameters, sizes, columns, the stream."""
    header, data = split(content)
    detector = json.loads(header["__metadata__"]["detector"])
    part = rng.choice(["parameters", "sizes", "columns", "stream", ""])
    if part and detector.get(part):
        detector[part] = changed_json(rng, detector[part])
    else:
        detector = changed_json(rng, detector)
    header["__metadata__"]["detector"] = json.dumps(detector)
    return joined(header, data)


def changed_json(rng, value, depth=0):
    """Return JSON with one place changed: a value, a name, an entry less or more."""
    if isinstance(value, dict) and value and (depth == 0 or rng.random() < 0.9):
        copy, key = dict(value), rng.choice(list(value))
        kind = rng.random()
        if kind < 0.05:
            del copy[key]
        elif kind < 0.08:
            copy[rng.choice(["extra", "", "__metadata__", "sha256"])] = copy[key]
        elif kind < 0.12:
            other = rng.choice(list(value))
            copy[key], copy[other] = copy[other], copy[key]
        else:
            copy[key] = changed_json(rng, value[key], depth + 1)
        return copy
    if isinstance(value, list) and value and (depth == 0 or rng.random() < 0.8):
        i, kind = rng.randrange(len(value)), rng.random()
        if kind < 0.05:
            return value[:i] + value[i + 1 :]
        if kind < 0.1:
            return [*value, value[i]]
        return [*value[:i], changed_json(rng, value[i], depth + 1), *value[i + 1 :]]
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.5:
        return rng.choice([value + 1, value - 1, value * 2, -value, float(value), value * 1000])
    return rng.choice(JSON_VALUES)


def _arrays(header):
    return {n: e for n, e in header.items() if n not in ("__metadata__", "sha256") and 0 not in e["shape"]}


def _forged_values(rng, content):
    """Change numbers of an array."""
    header, data = split(content)
    arrays = _arrays(header)
    buffer = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 5])):
        entry = arrays[rng.choice(list(arrays))]
        code = CODES[entry["dtype"]]
        size = struct.calcsize(code)
        start, stop = (len(content) - len(data) + offset for offset in entry["data_offsets"])
        at = start + size * rng.randrange((stop - start) // size)
        (old,) = struct.unpack_from(code, buffer, at)
        new = rng.choice([*FLOATS, old * 1.01, -old, old + 1e-9, old * 1e3] if code in ("<d", "<f") else
                         [*INTEGERS, old + 1, old - 1])  # fmt: skip
        n_cells = rng.choice([1, 1, 1, 3, (stop - at) // size])  # one cell, some, or the rest of the array
        for place in range(at, min(at + n_cells * size, stop), size):
            struct.pack_into(code, buffer, place, new)
    return signed(bytes(buffer))


def _resized(rng, content):
    """Make an array longer or shorter, with offsets that fit; often, the sizes of the model follow."""
    header, data = split(content)
    name = rng.choice(list(_arrays(header)))
    entry = header[name]
    start, stop = entry["data_offsets"]
    axis = rng.randrange(len(entry["shape"]))
    old = entry["shape"][axis]
    new = max(0, rng.choice([old + 1, old - 1, old * 2, 1, 0, old + 50]))
    row = (stop - start) // old
    body = data[start:stop]
    body = (body * (new // max(old, 1) + 1))[: row * new]
    entry["shape"][axis] = new
    moved = len(body) - (stop - start)
    for other in header.values():
        if "data_offsets" in other and other["data_offsets"][0] >= stop and other is not entry:
            other["data_offsets"] = [offset + moved for offset in other["data_offsets"]]
    entry["data_offsets"] = [start, stop + moved]
    detector = json.loads(header["__metadata__"]["detector"])
    if rng.random() < 0.7:
        for part in ("sizes", "parameters", "stream"):
            for key, value in (detector.get(part) or {}).items():
                if value == old and rng.random() < 0.5:
                    detector[part][key] = new
        header["__metadata__"]["detector"] = json.dumps(detector)
    return joined(header, data[:start] + body + data[stop:])


def _changed_bits(rng, content):
    """Change bits of the arrays; the checksum fits."""
    _, data = split(content)
    buffer, first = bytearray(content), len(content) - len(data)
    for _ in range(rng.choice([1, 4, 30])):
        buffer[rng.randrange(first, len(buffer) - 32)] ^= 1 << rng.randrange(8)
    return signed(bytes(buffer))
