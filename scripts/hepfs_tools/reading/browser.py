"""DuckDB in Chromium, which asks `hepfs serve` from a page of another origin.

Its packages come from npm, those of scripts/locks/duckdb-wasm, into .tools. A page is asked for an SQL query, and its
server gets the result as an Arrow file.
"""

import contextlib
import http.server
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

from hepfs_tools import ROOT

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
LIMIT = 120

PAGE = """<!doctype html><meta charset="utf-8"><title>DuckDB</title>
<script type="importmap">{"imports": IMPORTS}</script>
<script type="module">
const asked = ASKED;
async function answer() {
    const duckdb = await import(asked.library + "/dist/duckdb-browser.mjs");
    const worker = new Worker(asked.library + "/dist/duckdb-browser-eh.worker.js");
    const base = new duckdb.AsyncDuckDB(new duckdb.VoidLogger(), worker);
    await base.instantiate(new URL(asked.library + "/dist/duckdb-eh.wasm", location.href).href);
    await base.open({});
    return await base.runQuery(await base.connectInternal(), asked.query);
}
answer().then(
    file => fetch("/result", {method: "POST", body: file}),
    error => fetch("/error", {method: "POST", body: String(error)}));
</script>
"""


def packages():
    """The folder `node_modules`, made if it is missing, or older than the lock."""
    lock, folder = ROOT / "scripts/locks/duckdb-wasm", ROOT / ".tools/duckdb-wasm"
    name = "package-lock.json"
    if not (folder / "node_modules").is_dir() or (folder / name).read_bytes() != (lock / name).read_bytes():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(lock, folder)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--silent"], cwd=folder, check=True)
    return folder / "node_modules"


class Pages:
    """A server of pages, with an origin of its own."""

    def __init__(self):
        self.folder, self.page, self.results = packages(), b"", queue.Queue()
        pages = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            extensions_map = {".mjs": "text/javascript", ".js": "text/javascript", ".wasm": "application/wasm"}

            def __init__(self, *arguments):
                super().__init__(*arguments, directory=os.fspath(pages.folder))

            def log_message(self, *_):
                pass

            def do_GET(self):
                if self.path != "/":
                    return super().do_GET()
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(pages.page)

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                pages.results.put((self.path, body))
                self.send_response(204)
                self.end_headers()

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        self.origin = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def module(self, package, name, file):
        """The address of a module as Node finds it: beside the package's own modules first."""
        own = self.folder / package / "node_modules" / name
        return f"/{package}/node_modules/{name}/{file}" if own.is_dir() else f"/{name}/{file}"

    def ask(self, package, query, host="127.0.0.1"):
        """What DuckDB of a package answers, as an Arrow file; and headers of the requests that it made."""
        files = {"apache-arrow": "Arrow.dom.mjs", "tslib": "tslib.es6.mjs", "flatbuffers": "mjs/flatbuffers.js"}
        imports = {name: self.module(package, name, file) for name, file in files.items()}
        page = PAGE.replace("IMPORTS", json.dumps(imports))
        self.page = page.replace("ASKED", json.dumps({"library": f"/{package}", "query": query})).encode()
        program = next(filter(None, map(shutil.which, PROGRAMS)), None)
        if not program:
            raise FileNotFoundError("Chromium is missing: `scripts/setup --browser`")
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "net.json")
            line = [program, "--headless", "--disable-gpu", f"--user-data-dir={folder}/user", f"--log-net-log={log}"]
            line += ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
            line += ["--disable-extensions", "--disable-dev-shm-usage"]
            # No request leaves this computer.
            line += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"]
            line += ["--no-sandbox"] * (os.getuid() == 0)
            line.append(f"http://{host}:{self.port}/")
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            with subprocess.Popen(line, **quiet) as process:
                try:
                    what, body = self.results.get(timeout=LIMIT)
                except queue.Empty:
                    what, body = "/error", b"no answer"
                finally:
                    process.terminate()
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(20)
                    process.kill()
            found = requests(log)
        if what == "/error":
            raise RuntimeError(body.decode())
        return body, found

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def requests(log):
    """Of each request in a log of the network: address, method, range asked for, status."""
    text = log.read_text()
    try:
        logged = json.loads(text)
    except ValueError:
        # Chromium was cut off while it wrote the last lines.
        logged = json.loads(text[: text.rindex("},\n") + 1] + "]}")
    kinds = {code: name for name, code in logged["constants"]["logEventTypes"].items()}
    found = {}
    for event in logged["events"]:
        of, params, kind = found.setdefault(event["source"]["id"], {}), event.get("params", {}), kinds[event["type"]]
        if kind == "URL_REQUEST_START_JOB" and "url" in params:
            of |= {"url": params["url"], "method": params["method"]}
        elif kind == "HTTP_TRANSACTION_SEND_REQUEST_HEADERS":
            of["range"] = next((one[7:] for one in params["headers"] if one.lower().startswith("range: ")), None)
        elif kind == "HTTP_TRANSACTION_READ_RESPONSE_HEADERS":
            of["status"] = int(params["headers"][0].split()[1])
    return [one for one in found.values() if "url" in one and "status" in one]
