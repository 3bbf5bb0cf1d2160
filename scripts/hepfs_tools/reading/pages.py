#!/usr/bin/env python3
"""The page of a table, parsed again: its numbers held against NumPy's of the same rows, its names against the file's.

    pages.py write FILE                a table with a column of each kind, and arrays
    pages.py numbers FILE HEPFS        each picture of its page, and each figure; each pixel of pictures of the arrays
    pages.py hostile FILE HEPFS        writes names that would like to be markup, and looks for them on the pages
"""

import base64
import io
import math
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import h5py
import numpy as np
from PIL import Image

ROWS = 300_000
VOID = {"meta", "input", "br", "img", "rect", "path", "link", "wbr"}
ELEMENTS = VOID | set(
    "html head title style body main nav span a h1 h2 p b u em details summary ul li code table thead tbody tr th td"
    " small div svg dl dt dd ol label pre footer q".split()
)
ATTRIBUTES = set(
    "lang charset http-equiv content name class href id scope viewbox preserveaspectratio role d width height"
    " aria-hidden aria-label tabindex type checked for colspan alt src".split()
)
NAMES = [
    "</script><script>alert(1)<script>",
    '"><img src=x onerror=alert(1)>',
    "' onclick='x",
    "</style><style>*{display:none}",
    "--><!--",
    "\u202egpj.exe\u2069",
    "a\nb\t\x1b[2J\x7f",
    "javascript:alert(1)",
    "&lt;&amp;&#x3c;&",
    "`${x}`%s\\",
    "é ش 漢 🙂",
    "..%2f?#",
]


class Page(HTMLParser):
    """A page as elements: (name, attributes, text directly within, elements within)."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.root = ("", {}, [], [])
        self.open = [self.root]
        self.all = []
        self.feed(text)
        self.close()

    def handle_starttag(self, name, attributes):
        # Cells and items whose end is left out end with the next one.
        ends = {"td": {"td", "th"}, "th": {"td", "th"}, "tr": {"td", "th"}, "li": {"li"}}
        while self.open[-1][0] in ends.get(name, ()):
            self.open.pop()
        element = (name, dict(attributes), [], [])
        assert len(element[1]) == len(attributes), f"an attribute twice: {attributes}"
        self.all.append(element)
        self.open[-1][3].append(element)
        self.open[-1][2].append(element)
        if name not in VOID:
            self.open.append(element)

    def handle_startendtag(self, name, attributes):
        self.handle_starttag(name, attributes)
        if name not in VOID:
            self.open.pop()

    def handle_endtag(self, name):
        while self.open[-1][0] in {"td", "th", "li"} - {name} and name in {"tr", "ol", "ul"}:
            self.open.pop()
        assert self.open[-1][0] == name, f"</{name}> ends <{self.open[-1][0]}>"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1][2].append(data)


def text(element):
    return "".join(part if isinstance(part, str) else text(part) for part in element[2])


def find(element, name, **wanted):
    """All elements of a name within one, with these attributes."""
    for inner in element[3]:
        if inner[0] == name and all(inner[1].get(key.rstrip("_")) == value for key, value in wanted.items()):
            yield inner
        yield from find(inner, name, **wanted)


def page_of(hepfs, place):
    done = subprocess.run([hepfs, "info", "--html", place], capture_output=True, check=True)
    page = Page(done.stdout.decode())
    assert len(page.open) == 1, f"<{page.open[-1][0]}> does not end"
    for name, attributes, _, _ in page.all:
        assert name in ELEMENTS, name
        for attribute, value in attributes.items():
            assert attribute in ATTRIBUTES or re.fullmatch(r"data-[a-z]+", attribute), attribute
            if attribute == "href":
                assert re.match(r"#[a-z]+$|[A-Za-z0-9._~%/-]+$", value), value
    (policy,) = [one[1]["content"] for one in page.all if one[1].get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy, policy
    return page


def columns_of(page):
    """The rows of the table of columns: name, and the cells."""
    (table,) = find(page.root, "table", class_="cols")
    (body,) = find(table, "tbody")
    for row in find(body, "tr"):
        cells = [cell for cell in row[3] if cell[0] in ("th", "td")]
        names = [*find(cells[0], "a", class_="n"), *find(cells[0], "span", class_="n")]
        yield text(names[0]), cells


def figures(cell):
    (figures,) = find(cell, "dl")
    names, values = ([text(one) for one in find(figures, kind)] for kind in ("dt", "dd"))
    return dict(zip(names, values))


def number(shown):
    return float(re.sub("[≈ %<>]", "", shown).replace("∞", "inf"))


def write(path):
    rng = np.random.default_rng(48)
    seconds = np.cumsum(rng.exponential(0.05, ROWS))
    seconds[ROWS // 2 :] += 5_000
    floats = rng.normal(20, 3, ROWS)
    floats[100_000:120_000] = np.nan
    with h5py.File(path, "w") as file:
        table = file.create_group("t")
        for name, values in {
            "floats": floats,
            "singles": rng.normal(0, 1, ROWS).astype("f4"),
            "channels": rng.integers(-3, 100, ROWS).astype("i2"),
            "counts": rng.poisson(900, ROWS).astype("u4"),
            "skewed": np.exp(rng.normal(3, 1.5, ROWS)),
            "far": np.where(rng.random(ROWS) < 1e-3, -1e12, rng.random(ROWS)),
            "wide": rng.integers(-(2**63), 2**63 - 1, ROWS, dtype="i8"),
            "rising": np.cumsum(rng.random(ROWS)),
            "flags": rng.random(ROWS) < 0.11,
            "words": rng.choice([b"electron", b"muon", b"pion", b"kaon", b"<b>", b"&", b"tau"], ROWS),
            "vectors": rng.normal(0, 1, (ROWS, 3)),
        }.items():
            table.create_dataset(name, data=values, chunks=True, compression="gzip", compression_opts=1)
        table.create_dataset("time", data=(seconds * 1e9).astype("i8") + 1_769_839_200_000_000_000, chunks=True)
        table["time"].attrs["units"] = "nanoseconds since 1970-01-01"
        # As many elements as a picture has pixels. Each has a group of its own, since groups of equal lengths are tables.
        y, x = np.mgrid[:64, :256]
        file["real/array"] = np.where(rng.random((64, 256)) < 0.1, np.nan, np.hypot(x - 99, y))
        file["complex/array"] = np.hypot(x - 30, y - 9) * np.exp(1j * x)
        file["booleans/array"] = rng.random((64, 256)) < 0.2


def skyline(path, base):
    """The height at each whole place, of areas that stand on a line."""
    heights, x, y = np.full(640, 0), 0, base
    for letter, numbers in re.findall(r"([MmVhH])([-0-9 ]*)", path):
        values = [int(one) for one in re.findall(r"-?\d+", numbers)]
        if letter == "M":
            x, y = values
        elif letter == "m":
            x, y = x + values[0], y + values[1]
        elif letter == "V":
            y = values[0]
        else:
            end = x + values[0] if letter == "h" else values[0]
            heights[x:end] = base - y
            x = end
    return heights


def numbers(path, hepfs):
    with h5py.File(path) as file:
        stored = {name: dataset[:] for name, dataset in file["t"].items()}
        arrays = {name: file[name]["array"][:] for name in ("real", "complex", "booleans")}
    checked = check_columns(page_of(hepfs, f"{path}:t"), stored)
    assert len(checked) == len(stored) == 12, checked
    for name, values in arrays.items():
        check_picture(page_of(hepfs, f"{path}:{name}"), values)


def check_picture(page, values):
    """Holds the picture of the only array, an element for a pixel, against NumPy's shades."""
    (image,) = find(page.root, "img")
    kind, data = image[1]["src"].split(",")
    assert kind == "data:image/png;base64" and ("magnitudes" in image[1]["alt"]) == (values.dtype.kind == "c")
    drawn = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
    numbers = (np.abs(values) if values.dtype.kind == "c" else values).astype("f8")
    there = np.sort(numbers[~np.isnan(numbers)])
    least, greatest = (there[round((len(there) - 1) * share)] for share in (0.005, 0.995))
    shades = 1 + np.clip((numbers - least) / (greatest - least), 0, 1) * 254
    # Grey 0 is transparent: missing. Halves are rounded in two ways.
    assert ((drawn == 0) == np.isnan(numbers)).all() and ("striped" in image[1]["alt"]) == np.isnan(numbers).any()
    assert np.nanmax(np.abs(drawn - shades)) < 0.6, np.nanmax(np.abs(drawn - shades))


def check_columns(page, stored):
    """Holds the pictures and figures of a table's page against NumPy's of the same rows; the names of these columns."""
    checked, starts, lengths = [], None, None
    for name, (_, values_cell, trace_cell, figures_cell) in columns_of(page):
        trace = next(find(trace_cell, "svg"))
        if "data-rows" in trace[1]:
            starts = [int(one) for one in trace[1]["data-rows"].split(",")]
            lengths = [int(one) for one in trace[1]["data-length"].split(",")]
            lengths = lengths * len(starts) if len(lengths) == 1 else lengths
        if name not in stored:
            continue
        values = stored[name]
        stretches = [values[start : start + length] for start, length in zip(starts, lengths)]
        assert len(stretches) == 64 and starts[0] == 0 and starts[-1] + lengths[-1] == len(values), (starts, lengths)
        try:
            check = labels if values.dtype.kind in "Sb" else bars
            check(name, values, stretches, values_cell, trace, figures(figures_cell))
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
        checked.append(name)
    return checked


def bars(name, values, stretches, cell, trace, said):
    (svg,) = find(cell, "svg")
    sample = np.concatenate([stretch.ravel() for stretch in stretches])
    there = sample[~np.isnan(sample)] if sample.dtype.kind == "f" else sample
    finite = there[np.isfinite(there)]
    counts = np.array([int(one) for one in svg[1]["data-counts"].split(",")])
    whole = there.dtype.kind in "iu"
    low, high = (int(svg[1][end]) if whole else float(svg[1][end]) for end in ("data-from", "data-to"))
    width = int(svg[1].get("data-width", 1))
    if "data-scale" in svg[1]:
        edges = np.geomspace(low, high, len(counts) + 1)
        edges[0], edges[-1] = low, high
    elif whole:
        # Of Python's integers, since those of NumPy overflow.
        edges = [low + width * at for at in range(len(counts) + 1)]
    else:
        edges = np.linspace(low, high, len(counts) + 1)
    if svg[1].get("data-of") == "rows":
        # Between stretches in proportion: never farther off than the rows between them.
        assert counts.sum() == len(values)
        exact = np.searchsorted(values, np.array(edges[1:-1], dtype=values.dtype))
        gap = max(len(values) / 64, 1024)
        assert np.abs(np.cumsum(counts)[:-1] - exact).max() <= gap, np.cumsum(counts)[:-1] - exact
    else:
        if whole:
            places = [(int(one) - low) // width for one in there]
            expected = np.array([Counter(places)[at] for at in range(len(counts))])
        else:
            expected = np.histogram(finite, edges)[0]
        if "data-scale" in svg[1]:
            # Logarithms may differ in the last digit.
            assert np.abs(counts - expected).sum() <= 4, (counts, expected)
        else:
            assert (counts == expected).all(), (counts, expected)
        assert counts.sum() + int(svg[1].get("data-outside", 0)) == len(there)
        if not whole and "data-scale" not in svg[1]:
            first, last = np.percentile(finite.astype("f8"), [0.5, 99.5])
            beyond = 0.06 * (last - first)
            assert math.isclose(low, max(finite.min(), first - beyond), rel_tol=1e-9), (low, first)
            assert math.isclose(high, min(finite.max(), last + beyond), rel_tol=1e-9), (high, last)
    heights = np.maximum(np.round(counts / counts.max() * 100), 2) * (counts > 0)
    (drawn,) = find(svg, "path")
    middles = [(at * 640 // len(counts) + (at + 1) * 640 // len(counts)) // 2 - 1 for at in range(len(counts))]
    # Halves are rounded in two ways.
    assert np.abs(skyline(drawn[1]["d"], 104)[middles] - heights).max() <= 1
    is_constant = there.min() == there.max()
    if is_constant:
        assert number(said["always"]) == there[0], said
    elif name != "time":
        for figure, expected in {"least": there.min(), "median": np.median(there), "greatest": there.max()}.items():
            # Four digits, or three before an exponent.
            digits = 1e-3 if whole or 1e-3 <= abs(expected) < 1e6 else 5e-3
            assert math.isclose(number(said[figure]), float(expected), rel_tol=digits), (figure, said, expected)
    nan = sum(np.isnan(stretch).sum() for stretch in stretches) if sample.dtype.kind == "f" else 0
    assert math.isclose(number(said.get("NaN", "0")), 100 * nan / sample.size, abs_tol=0.051), said
    assert number(said["missing"]) == 0, said
    assert said.get("order", "").startswith("rising") == ((there[1:] >= there[:-1]).all() and not is_constant), said
    if nan:
        expected = [int(np.isnan(stretch).sum()) for stretch in stretches]
        assert [int(one) for one in trace[1]["data-nan"].split(",")] == expected
    if "data-scale" not in svg[1] and name != "far" and not is_constant:
        over(stretches, finite, trace)


def over(stretches, there, trace):
    """The band and the medians."""
    low, high = int(there.min()) if there.dtype.kind in "iu" else there.min(), there.max()
    (band,) = find(trace, "path", class_="band")
    top = np.full(640, -1)
    for part in re.findall(r"M[^M]*", band[1]["d"]):
        x, y = (int(one) for one in re.match(r"M(\d+) (\d+)", part).groups())
        for letter, value in re.findall(r"([Vh])(-?\d+)", part):
            if letter == "V":
                y = int(value)
            elif int(value) > 0:
                top[x : x + int(value)] = y
                x += int(value)
    (line,) = find(trace, "path", class_="med")
    medians = {}
    for part in re.findall(r"M[^M]*", line[1]["d"]):
        places = [int(one) for one in re.findall(r"-?\d+", part.split("h")[0])]
        x, y = 0, 0
        for dx, dy in zip(places[::2], places[1::2]):
            x, y = x + dx, y + dy
            medians[x] = y
    for at, stretch in enumerate(stretches):
        values = stretch[~np.isnan(stretch)] if stretch.dtype.kind == "f" else stretch
        middle = at * 10 + 5
        if not len(values):
            assert top[middle] == -1 and middle not in medians
            continue
        ends = float(low), float(high)
        shares = [(float(value) - ends[0]) / (ends[1] - ends[0]) for value in (np.median(values), values.max())]
        median, greatest = (86 - round(min(one, 1) * 84) for one in shares)
        assert abs(medians[middle] - median) <= 1, (at, medians[middle], median)
        assert abs(top[middle] - greatest) <= 2, (at, top[middle], greatest)


def labels(name, values, stretches, cell, trace, said):
    sample = np.concatenate(stretches)
    if values.dtype.kind == "b":
        (svg,) = find(cell, "svg")
        assert svg[1]["data-counts"] == f"{sample.sum()},{len(sample) - sample.sum()}"
        return
    counts = Counter(one.decode() for one in sample).most_common()
    items = list(find(cell, "li"))
    shown = [(text(next(find(item, "b"))), int(item[1]["data-count"])) for item in items[:5]]
    assert shown == counts[:5], (shown, counts)
    assert int(items[5][1]["data-count"]) == sum(count for _, count in counts[5:])
    assert number(said["distinct"]) == len(counts)
    # The commonest one is the lowest area, drawn last.
    (lowest,) = find(trace, "path", class_="s0")
    shares = [np.mean(stretch == counts[0][0].encode()) for stretch in stretches]
    (others,) = find(trace, "path", class_="so")
    assert (skyline(others[1]["d"], 88)[5::10] == 88).all()
    heights = skyline(lowest[1]["d"], 88)[5::10]
    assert np.abs(heights - np.array(shares) * 88).max() <= 1, heights


def printable(name):
    """A name as a page shows it: nothing that acts on a terminal, or reorders text."""
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}

    def escaped(character):
        hidden = unicodedata.category(character) in ("Cc", "Zl", "Zp") or character in "\u061c\u200e\u200f"
        hidden |= "\u2028" <= character <= "\u202e" or "\u2066" <= character <= "\u2069"
        return short.get(character, f"\\u{{{ord(character):x}}}") if hidden else character

    return "".join(map(escaped, name))


def is_shown(shown, name):
    """Whether a text is shown in full, or cut."""
    wanted = printable(name)
    return shown == wanted or (shown.endswith("…") and len(shown) > 20 and wanted.startswith(shown[:-1]))


def hostile(path, hepfs):
    names = NAMES + ["<" * 60_000, "\u202e" * 20_000]
    # A slash separates names, but not texts.
    text_of = {name.replace("/", "∕"): name[:1000] for name in names}
    stored = list(text_of)
    with h5py.File(path, "w") as file:
        table = file.create_group("t")
        for name in stored:
            table[name] = np.arange(200.0)
            table[name].attrs.update({"units": text_of[name], "description": text_of[name]})
        table[b"\xff\xfe"] = np.arange(200.0)
        table["texts"] = (list(text_of.values()) * 20)[:200]
        for at, name in enumerate(stored):
            table.attrs[name[:1000]] = text_of[name]
            file.create_group(name)["x"] = at
    page = page_of(hepfs, f"{path}:t")
    columns = dict(columns_of(page))
    for name in stored:
        (cells,) = [cells for shown, cells in columns.items() if is_shown(shown, name)]
        about = cells[0]
        (units,) = find(about, "b", class_="n")
        (description,) = find(about, "p", class_="n")
        assert is_shown(text(units), text_of[name]), text(units)
        line = re.sub(r"[\n\r\t]", " ", text_of[name])
        assert is_shown(text(description), line), text(description)
    assert any("\ufffd" in shown for shown in columns)
    shown = [text(one) for one in find(columns["texts"][1], "b")]
    texts = [printable(name) for name in text_of.values()]
    assert len(shown) == 5 and all(any(name.startswith(one.rstrip("…")) for name in texts) for one in shown), shown
    (attributes,) = find(page.root, "details", class_="a")
    listed = [(text(row[3][0]), text(row[3][1])) for row in find(attributes, "tr")]
    for name in stored:
        line = re.sub(r"[\n\r\t]", " ", text_of[name])
        assert any(is_shown(key, name[:1000]) and is_shown(value, line) for key, value in listed), name[:40]
    # The root names them all as groups; each has a page of its own.
    root = page_of(hepfs, str(path))
    listed = [one for frame in find(root.root, "div", class_="files") for one in find(frame, "a", class_="n")]
    listed = ["".join(part for part in one[2] if isinstance(part, str)).removesuffix("/") for one in listed]
    for name in stored:
        assert any(is_shown(one, name) for one in listed), name[:40]


if __name__ == "__main__":
    action, arguments = sys.argv[1], sys.argv[2:]
    {"write": write, "numbers": numbers, "hostile": hostile}[action](*[Path(arguments[0]), *arguments[1:]])
