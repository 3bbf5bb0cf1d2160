"""What the scripts share. `cargo xtask` and the tests set `PYTHONPATH` to `scripts`, so that it is found."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""
DATA = ROOT / "tests" / "data"
"""Fixtures, and what is expected of them."""
