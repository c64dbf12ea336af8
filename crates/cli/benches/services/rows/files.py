"""Makes files of text, the same each time, of a mean size, in a hundred folders.

usage: files.py FOLDER COUNT BYTES
"""

import math
import os
import random
import sys

folder, count, mean = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
chance = random.Random(5)
words = ["".join(chance.choice("etaoinshrdlu") for _ in range(chance.randint(2, 10))) for _ in range(5000)]
lines = (" ".join(chance.choice(words) for _ in range(10)) for _ in range(60000))
text = "\n".join(lines).encode()
for i in range(100):
    os.makedirs(f"{folder}/{i:02}")
SIGMA = 0.8
for i in range(count):
    size = int(chance.lognormvariate(math.log(mean) - SIGMA * SIGMA / 2, SIGMA)) + 1
    size = min(size, 20 * mean)
    start = chance.randrange(len(text) - size)
    with open(f"{folder}/{i % 100:02}/{i}.txt", "wb") as file:
        file.write(text[start : start + size])
