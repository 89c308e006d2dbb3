# SPDX-License-Identifier: Apache-2.0
"""Threads, processes, sockets, mappings and signals, each in a few lines."""

import asyncio
import concurrent.futures
import ctypes
import hashlib
import json
import mmap
import os
import queue
import signal
import socket
import subprocess
import sys
import threading

print("--- threads")
jobs, results = queue.Queue(), []
lock = threading.Lock()


def work():
    while (n := jobs.get()) is not None:
        digest = hashlib.sha256(b"%d" % n * 1000).hexdigest()
        with lock:
            results.append((n, digest[:8]))


threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for n in range(200):
    jobs.put(n)
for _ in threads:
    jobs.put(None)
for thread in threads:
    thread.join()
print(len(results), sorted(results)[-1])
with concurrent.futures.ThreadPoolExecutor(6) as pool:
    print(sum(pool.map(lambda n: n * n, range(1000))))
barrier, local = threading.Barrier(5), threading.local()


def meet(number, found):
    local.number = number
    barrier.wait()
    found[number] = local.number


found = {}
threads = [threading.Thread(target=meet, args=(n, found)) for n in range(5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(found.items()))

print("--- subprocess")
print(subprocess.run(["sh", "-c", "cat; echo err >&2; exit 4"],
                     input=b"given", capture_output=True))
children = [subprocess.Popen([sys.executable, "-c", "print(%d ** 2)" % n],
                             stdout=subprocess.PIPE) for n in range(4)]
print([int(child.communicate()[0]) for child in children])
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(list(pool.map(lambda n: subprocess.run(
        ["sh", "-c", "exit %d" % n]).returncode, range(8))))
child = subprocess.Popen(["sleep", "100"])
child.terminate()
print(child.wait())

print("--- fork")
with mmap.mmap(-1, 4096) as shared:
    for n in range(6):
        if os.fork() == 0:
            shared[n] = n + 1
            os._exit(n)
    statuses = sorted(os.waitstatus_to_exitcode(os.wait()[1])
                      for _ in range(6))
    print(statuses, bytes(shared[:6]))

print("--- signals")
counts = {}


def count(number, _frame):
    counts[number] = counts.get(number, 0) + 1


signal.signal(signal.SIGUSR1, count)
signal.signal(signal.SIGALRM, count)
for _ in range(50):
    os.kill(os.getpid(), signal.SIGUSR1)
signal.setitimer(signal.ITIMER_REAL, 0.05)
while signal.SIGALRM not in counts:
    signal.pause()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
os.kill(os.getpid(), signal.SIGUSR2)
print(signal.sigpending(), signal.sigwait([signal.SIGUSR2]),
      counts[signal.SIGUSR1], counts[signal.SIGALRM])

print("--- sockets")
server = socket.create_server(("127.0.0.1", 0))


def serve():
    for _ in range(4):
        peer, _ = server.accept()
        with peer:
            peer.sendall(peer.recv(100).upper())


thread = threading.Thread(target=serve)
thread.start()
for n in range(4):
    with socket.create_connection(server.getsockname()) as client:
        client.sendall(b"client %d" % n)
        print(client.recv(100))
thread.join()

print("--- asyncio")


async def main():
    async def echo(reader, writer):
        writer.write((await reader.readline())[::-1])
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(echo, "127.0.0.1", 0)
    host, port = listening.sockets[0].getsockname()

    async def ask(n):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"%d abc\n" % n)
        answer = await reader.read()
        writer.close()
        return answer

    print(await asyncio.gather(*(ask(n) for n in range(5))))
    process = await asyncio.create_subprocess_exec(
        "echo", "from a child", stdout=asyncio.subprocess.PIPE)
    print((await process.communicate())[0], process.returncode)
    await asyncio.sleep(0.01)
    listening.close()


asyncio.run(main())

print("--- mappings")
with open("file", "wb") as out:
    out.truncate(1 << 20)
with open("file", "r+b") as file, mmap.mmap(file.fileno(), 0) as one, \
        mmap.mmap(file.fileno(), 0) as two:
    one[500000:500005] = b"hello"
    print(two.find(b"hello"), file.seek(500000), file.read(5))
libc = ctypes.CDLL(None)
print(libc.abs(-5), libc.strlen(b"four"))

print("--- memory")
table = {str(n): list(range(n % 20)) for n in range(50000)}
print(len(json.dumps(table)), sum(map(len, table.values())))
print("--- end")
