"""src/data/tokens/philox_draws.h in Python, with the methods of random.Random that the original BERT's scripts call: the
original's own code, drawing our numbers, must make our data."""
MASK32, MASK64 = 2**32 - 1, 2**64 - 1
PAIRS, MASKS, SHARDS, ROWS, SYNTHETIC = 1, 2, 3, 4, 5


def mix64(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK64
    return x ^ (x >> 31)


def philox(key, counter, stream):
    """Philox 4x32 with ten rounds (Salmon et al. 2011)."""
    k0, k1 = key & MASK32, key >> 32
    c = [counter & MASK32, counter >> 32, stream & MASK32, stream >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k0, b & MASK32, (a >> 32) ^ c[3] ^ k1, a & MASK32]
        k0, k1 = (k0 + 0x9E3779B9) & MASK32, (k1 + 0xBB67AE85) & MASK32
    return c


class Draws:
    def __init__(self, seed, purpose, number):
        self.key, self.stream, self.drawn, self.words = mix64(seed) ^ purpose, number, 0, []

    def next(self):
        if self.drawn % 4 == 0:
            self.words = philox(self.key, self.drawn // 4, self.stream)
        self.drawn += 1
        return self.words[(self.drawn - 1) % 4]

    def random(self):
        return self.next() / 2**32

    def below(self, bound):
        return (self.next() * bound) >> 32

    def randint(self, low, high):
        return low + self.below(high - low + 1)

    def shuffle(self, items):
        for i in range(len(items), 1, -1):
            j = self.below(i)
            items[i - 1], items[j] = items[j], items[i - 1]
