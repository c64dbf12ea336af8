"""Asks a web server on a socket for files, some more often than others, the same each time.

usage: gets.py SOCKET FILES COUNT
"""

import itertools
import random
import socket
import sys

path, files, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
chance = random.Random(9)
order = list(range(files))
chance.shuffle(order)
weights = list(itertools.accumulate(1 / (rank + 1) ** 0.9 for rank in range(files)))
wanted = chance.choices(order, cum_weights=weights, k=count)

server = socket.socket(socket.AF_UNIX)
server.connect(path)
answer = server.makefile("rb", 1 << 16)
for i in wanted:
    server.sendall(f"GET /{i % 100:02}/{i}.txt HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    status = answer.readline()
    length = 0
    while (line := answer.readline()) != b"\r\n":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    body = answer.read(length)
    if b" 200 " not in status or len(body) != length:
        sys.exit(f"{i}: {status!r}")
