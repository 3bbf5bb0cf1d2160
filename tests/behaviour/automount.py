"""A small automounter: python3 automount.py MOUNTPOINT COMMAND...

Mounts `autofs` on MOUNTPOINT (a direct mount, of protocol 5), and writes "ready". For each process that looks there, it
runs COMMAND in its own process group, the only one that may look meanwhile. It writes "mounted" with the command's exit
code, or "hangs" where that takes too long. It unmounts everything at the end of standard input. As root.
"""

import ctypes
import fcntl
import os
import select
import struct
import subprocess
import sys

LIMIT = 30
READY, FAIL = 0x9360, 0x9361
MISSING_DIRECT, SIZE = 5, 304
MNT_DETACH = 2

libc = ctypes.CDLL(None, use_errno=True)


def checked(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def say(*words):
    print(*words, flush=True)


def attend(point, packets, root, command):
    """Answers packets of the kernel until standard input ends."""
    while True:
        if sys.stdin in select.select([sys.stdin, packets], [], [])[0]:
            return
        packet = os.read(packets, SIZE)
        kind, token = struct.unpack_from("=2i", packet, 4)
        if kind != MISSING_DIRECT:
            say("packet", kind)
            continue
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        try:
            code = child.wait(LIMIT)
            say("mounted", code)
        except subprocess.TimeoutExpired:
            code = 1
            child.kill()
            say("hangs")
        fcntl.ioctl(root, READY if code == 0 else FAIL, token)


def main():
    point, *command = sys.argv[1:]
    os.setpgid(0, 0)
    packets, theirs = os.pipe2(os.O_CLOEXEC)
    options = f"fd={theirs},pgrp={os.getpgrp()},minproto=5,maxproto=5,direct"
    checked(libc.mount(b"hepfs-test", point.encode(), b"autofs", 0, options.encode()))
    root = os.open(point, os.O_RDONLY | os.O_DIRECTORY)
    try:
        say("ready")
        attend(point, packets, root, command)
    finally:
        os.close(root)
        # umount(8) would look, and wait.
        while libc.umount2(point.encode(), MNT_DETACH) == 0:
            pass


main()
