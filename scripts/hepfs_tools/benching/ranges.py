"""A web server of ranges, which counts what is asked of it, and answers as late as a network does."""

import asyncio
import hashlib
import json
import multiprocessing
import re
import time
import urllib.request
from contextlib import contextmanager


class Server:
    """Answers ranges of files below a folder, late and no faster than its bandwidth. `/reset` and `/stats` count."""

    def __init__(self, folder, delay, rate):
        self.folder, self.delay, self.rate = folder, delay, rate
        self.free_at = 0.0
        self.reset()

    def reset(self):
        self.counts = dict(requests=0, bytes=0, rounds=0, most=0, now=0)

    async def answer(self, verb, path, head, writer):
        if path in ("/reset", "/stats"):
            if path == "/reset":
                self.reset()
            body = json.dumps(self.counts).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            return
        counts = self.counts
        counts["requests"] += 1
        counts["now"] += 1
        counts["rounds"] += counts["now"] == 1
        counts["most"] = max(counts["most"], counts["now"])
        try:
            await self.send(verb, path, head, writer)
        finally:
            counts["now"] -= 1

    async def send(self, verb, path, head, writer):
        await asyncio.sleep(self.delay)
        file = self.folder / path.lstrip("/").split("?")[0]
        if not file.is_file():
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            return
        size = file.stat().st_size
        first, last, status = 0, size - 1, "200 OK"
        fields = ""
        if found := re.search(r"(?im)^range: *bytes=(\d*)-(\d*)", head):
            status = "206 Partial Content"
            first = int(found[1]) if found[1] else size - int(found[2])
            last = min(int(found[2]), size - 1) if found[1] and found[2] else size - 1
            fields = f"Content-Range: bytes {first}-{last}/{size}\r\n"
        tag = hashlib.md5(file.name.encode()).hexdigest()
        writer.write(
            f'HTTP/1.1 {status}\r\nContent-Length: {last - first + 1}\r\n{fields}ETag: "{tag}"\r\n'
            f"Accept-Ranges: bytes\r\nLast-Modified: Thu, 26 Nov 2026 10:00:00 GMT\r\n"
            f"Content-Type: application/octet-stream\r\n\r\n".encode()
        )
        if verb == "HEAD":
            return
        with file.open("rb") as opened:
            opened.seek(first)
            left = last - first + 1
            while left > 0:
                piece = opened.read(min(left, 64 << 10))
                left -= len(piece)
                now = time.perf_counter()
                self.free_at = max(self.free_at, now) + len(piece) / self.rate
                # A timer is no finer than a millisecond.
                if self.free_at - now > 0.002:
                    await asyncio.sleep(self.free_at - now)
                self.counts["bytes"] += len(piece)
                writer.write(piece)
                await writer.drain()

    async def serve(self, reader, writer):
        try:
            is_new = True
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                verb, path, _ = head.split(" ", 2)
                # The handshake.
                if is_new and path not in ("/reset", "/stats"):
                    await asyncio.sleep(self.delay)
                is_new = False
                await self.answer(verb, path, head, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def run(self, ready):
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        ready.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()


def serve(folder, delay, rate, ready):
    asyncio.run(Server(folder, delay, rate).run(ready))


@contextmanager
def serving(folder, delay, rate):
    """The address of a server in a process of its own. `delay` is in seconds, `rate` in bytes a second."""
    ready = multiprocessing.Queue()
    server = multiprocessing.Process(target=serve, args=(folder, delay, rate, ready), daemon=True)
    server.start()
    try:
        yield f"http://127.0.0.1:{ready.get()}"
    finally:
        server.terminate()
        server.join()


def ask(base, what):
    with urllib.request.urlopen(f"{base}/{what}") as answer:
        return json.load(answer)
