"""TensorFlow's checkpoints (version 2) by their published formats, without TensorFlow: tensor_bundle.proto,
tensor_shape.proto, types.proto, and table_format.md of LevelDB. Independent of the reader in src/convert/."""
import struct

FLOAT, STRING, INT64, BFLOAT16, HALF = 1, 7, 9, 14, 19
SIZES = {FLOAT: 4, BFLOAT16: 2, HALF: 2, INT64: 8, STRING: 1}


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


# The check value of CRC-32C that its catalogues give.
assert crc32c(b"123456789") == 0xE3069283


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def integer(number, value):
    return varint(number << 3) + varint(value) if value else b""


def message(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def entry(dtype, shape, shard, offset, data):
    dimensions = b"".join(message(2, integer(1, n)) for n in shape)
    return (integer(1, dtype) + message(2, dimensions) + integer(3, shard) + integer(4, offset) + integer(5, len(data)) +
            varint(6 << 3 | 5) + struct.pack("<I", masked(data)))


def block(pairs, restart_interval=16):
    out, restarts, last = b"", [], b""
    for i, (key, value) in enumerate(pairs):
        shared = 0
        if i % restart_interval == 0:
            restarts.append(len(out))
        else:
            while shared < min(len(last), len(key)) and last[shared] == key[shared]:
                shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    restarts = restarts or [0]
    return out + b"".join(struct.pack("<I", r) for r in restarts) + struct.pack("<I", len(restarts))


def table(pairs, per_block=7, compression=0):
    """A table of sorted pairs in several blocks."""
    out, index = b"", []

    def add(data):
        nonlocal out
        handle = varint(len(out)) + varint(len(data))
        kind = bytes([compression])
        out += data + kind + struct.pack("<I", masked(data + kind))
        return handle

    for i in range(0, len(pairs), per_block):
        part = pairs[i:i + per_block]
        index.append((part[-1][0], add(block(part))))
    handles = add(block([])) + add(block(index, 1))
    return out + handles + bytes(40 - len(handles)) + struct.pack("<Q", 0xDB4775248B80FB57)


def write(prefix, variables, shards=2, endianness=0, **options):
    """variables: name to (data type, shape, bytes)."""
    files = [b""] * shards
    pairs = [(b"", integer(1, shards) + integer(2, endianness) + message(3, integer(1, 1)))]
    for i, (name, (dtype, shape, data)) in enumerate(sorted(variables.items())):
        shard = i % shards
        pairs.append((name.encode(), entry(dtype, shape, shard, len(files[shard]), data)))
        files[shard] += data
    for i, data in enumerate(files):
        with open(f"{prefix}.data-{i:05d}-of-{shards:05d}", "wb") as f:
            f.write(data)
    with open(prefix + ".index", "wb") as f:
        f.write(table(pairs, **options))
