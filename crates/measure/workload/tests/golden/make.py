"""Golden values for the tests of addresses, arrivals and content, from sources of their own.

    python3 make.py > values.csv        (needs SciPy; written with 1.17)

Distributions come from SciPy. The generator and the stamped unit are written here a second time, byte
by byte from FIPS 197 and from the descriptions in `simd.rs` and `stamp/format.rs`.
"""

import struct

from scipy import stats

M64 = (1 << 64) - 1


def row(*fields):
    print(",".join(repr(f) if isinstance(f, float) else str(f) for f in fields))


# --- distributions -------------------------------------------------------------------------------

for n, s in [(1000, 0.5), (1000, 1.0), (1000, 1.2), (100000, 0.99), (7, 2.0)]:
    for rank in range(1, min(n, 15) + 1):
        row("zipf", n, float(s), rank - 1, float(stats.zipfian.pmf(rank, s, n)))

for p in [1e-300, 1e-20, 1e-9, 1e-3, 0.02425, 0.075, 0.25, 0.5, 0.6, 0.9249, 0.97575, 0.999999]:
    row("normal-quantile", p, float(stats.norm.ppf(p)))

for deviation in [0.05, 0.1, 0.5]:
    bell = stats.truncnorm(-0.5 / deviation, 0.5 / deviation, loc=0.5, scale=deviation)
    for cell in range(20):
        row("normal-cell", deviation, cell, float(bell.cdf((cell + 1) / 20) - bell.cdf(cell / 20)))

for count in range(16):
    row("poisson", 5, count, float(stats.poisson.pmf(count, 5)))

for df in [6, 15, 16, 19]:
    row("chi-square-99.9", df, float(stats.chi2.ppf(0.999, df)))

row("kolmogorov-99.9", 0, float(stats.kstwobign.ppf(0.999)))

# --- the generator -------------------------------------------------------------------------------


def gf_mul(a, b):
    product = 0
    while b:
        if b & 1:
            product ^= a
        a <<= 1
        if a & 0x100:
            a ^= 0x11B
        b >>= 1
    return product


def s_box():
    box = []
    for x in range(256):
        inverse = next((y for y in range(256) if gf_mul(x, y) == 1), 0)
        value = 0
        for i in range(8):
            bit = 0x63 >> i
            for shift in (0, 4, 5, 6, 7):
                bit ^= inverse >> ((i + shift) % 8)
            value |= (bit & 1) << i
        box.append(value)
    return box


BOX = s_box()


def aes_round(state, key, last):
    state = [BOX[b] for b in state]
    state = [state[4 * ((c + r) % 4) + r] for c in range(4) for r in range(4)]
    if not last:
        mixed = []
        for c in range(4):
            column = state[4 * c : 4 * c + 4]
            for r in range(4):
                mixed.append(
                    gf_mul(2, column[r])
                    ^ gf_mul(3, column[(r + 1) % 4])
                    ^ column[(r + 2) % 4]
                    ^ column[(r + 3) % 4]
                )
        state = mixed
    return [s ^ k for s, k in zip(state, key)]


def block(key, high, low):
    """ARS-5 of the counter (high, low)."""
    keys = [
        struct.pack(
            "<QQ",
            (key[0] + i * 0x9E3779B97F4A7C15) & M64,
            (key[1] + i * 0xBB67AE8584CAA73B) & M64,
        )
        for i in range(6)
    ]
    state = [s ^ k for s, k in zip(struct.pack("<QQ", low & M64, high), keys[0])]
    for i in range(1, 6):
        state = aes_round(state, keys[i], i == 5)
    return bytes(state)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


for key, high, low in [
    ((0, 0), 0, 0),
    ((0x0123456789ABCDEF, 0xFEDCBA9876543210), 5, 7),
    ((M64, M64), M64, M64 - 1),
]:
    data = b"".join(block(key, high, low + i) for i in range(2))
    row("generator", key[0], key[1], high, low, data.hex())

# --- the stamped unit ----------------------------------------------------------------------------


def mix(seed, index):
    z = (seed + (index + 1) * 0x9E3779B97F4A7C15) & M64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M64
    return z ^ (z >> 31)


def stamp(run, target, generation, offset, sectors, parts):
    rest = struct.pack("<2sBBQQII", b"PL", sectors, parts, offset, run, generation, target)
    crc = crc32c(bytes(4) + rest)
    words = list(struct.unpack("<4Q", struct.pack("<I", crc) + rest))
    for i in range(4):
        words[i] ^= mix(crc, i) & (M64 if i else ~0xFFFFFFFF)
    return struct.pack("<4Q", *words)


def unit(run, target, generation, offset, sectors, parts):
    key = (mix(run, 0), mix(run, 1))
    filler = struct.pack("<Q", mix(run, 2) | 0x0101010101010101)
    high = target << 32 | generation
    out = b""
    for sector in range(sectors):
        up = lambda i: -(-i * parts // sectors)
        random = 32 * (up(sector + 1) - up(sector))
        first = (offset + 512 * sector) // 16
        body = b"".join(block(key, high, first + i) for i in range(random // 16))
        out += body + filler * ((512 - random) // 8)
    return stamp(run, target, generation, offset, sectors, parts) + out[32:]


for run, target, generation, offset in [
    (42, 0, 1, 0),
    (0xDEADBEEF, 7, 123456, 40960),
    (M64, 0xFFFFFFFE, 0xFFFFFFFF, (1 << 62) + 8192),
]:
    data = unit(run, target, generation, offset, 8, 128)
    row("unit", run, target, generation, offset, data[:48].hex(), crc32c(data))

# A compressible unit of two sectors, which must be recognised from its bytes alone.
row("whole", 42, 3, 9, 8192, 2, 13, unit(42, 3, 9, 8192, 2, 13).hex())
