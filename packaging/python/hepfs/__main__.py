"""Becomes the program: `python -m hepfs COMMAND …`."""

import os
import sys

from . import program

if __name__ == "__main__":
    os.execv(program(), ["hepfs", *sys.argv[1:]])
