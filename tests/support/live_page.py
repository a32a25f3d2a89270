"""The live page in a browser, with an admin API of a few lines behind it."""

import atexit
import html
import json
import subprocess
import threading
from contextlib import ExitStack, contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory

from browser import CHROMIUM, OPTIONS, PATIENCE_S, Page, started
from live_view import LIVE

SHOWN_MS = 4000
"""For how long a page is shown at most, by its own clock, which does not wait for anybody."""
STEP_MS = 250
"""How often it is looked for what the page has told: each second on its clock is sixty pictures that are drawn."""
_at_end = ExitStack()
atexit.register(_at_end.close)
TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
STUB = """
<script>
const puts = [], said = [], seen = [], asked = [], replies = %(replies)s, refused = %(refused)s, answers = {
  "/v1/live": %(live)s, "/v1/tokens": %(tokens)s, "/v1/refusals": %(refusals)s, "/v1/series": %(series)s,
  "/v1/watch": %(watch)s, "/redpanda.core.admin.v2.ClusterService/ListKafkaConnections": %(listed)s,
  "/v1/quotas": {quotas: []}, "/v1/config/history": {history: []}};
window.fetch = async (url, options = {}) => {
  const path = url.replace(location.origin, "");
  if (options.method === "PUT") {
    puts.push([path, JSON.parse(options.body)]);
    const [status, body] = replies.shift();
    return new Response(body, {status});
  }
  asked.push(options.method === "POST" ? `${path} ${options.body}` : path);
  const refusal = refused[path.split("?")[0]];
  return new Response(JSON.stringify(refusal || answers[path.split("?")[0]]), {status: refusal ? 400 : 200});
};
const fill = async (form, ...values) => {
  [...form.querySelectorAll("input, select")].forEach((field, n) => field.value = values[n]);
  form.requestSubmit();
  await new Promise(done => setTimeout(done, 50));
  said.push(document.getElementById("say").textContent);
};
const until = async condition => { while (!condition()) await new Promise(done => setTimeout(done, 50)); };
const setQuota = value => fill(document.querySelector("#quotas form"), "user=alice", "producer_byte_rate", value);
</script>
"""
THEN = """
<script>
setTimeout(async () => {
  await until(() => document.querySelector(%s));
  const text = document.body.innerText;
  %s
  const told = JSON.stringify({puts, said, text, seen});
  document.body.replaceChildren(Object.assign(document.createElement("pre"), {id: "result", textContent: told}));
}, 500);
</script>
"""
TOKENS = {"pools": [
    {"broker": 0, "kind": "ip", "key": "10.0.0.1", "home": 0, "cap": 50, "limit": "", "mode": "open", "free": 0, "waiting": 0,
     "in_use": 3, "cached": 1, "holders": [{"shard": 1, "in_use": 3, "cached": 1}]}
]}  # fmt: skip
REFUSALS = {"refusals": [{"ip": f"10.0.1.{n}", "count": 9, "error": 0, "reasons": {"ip_cap": 9}} for n in range(64)]}


HOSTILE = "<img src=x onerror=document.title=1><script>document.title=1</script>"
POINT = {"used": {"connections": 19, "new_connections": 4.5}, "limits": {"connections": 20, "new_connections": 5}, "admitted": 3.0,
         "refused": {"ip_cap": 2.5}, "throttle_ms": {}}  # fmt: skip
WATCH = {"broker": 0, "ip": "10.0.0.1", "user": None, "client_id": None, "began": 900.0, "step_s": 1.0, "admitted": 12_345,
         "refused": {"ip_cap": 64}, "points": [{**POINT, "at": 900.0 + n} for n in range(100)]}  # fmt: skip
LISTED = {"totalSize": "21", "connections": [
    {"source": {"ipAddress": "10.0.0.1", "port": 4711}, "clientId": HOSTILE, "clientSoftwareName": "rdkafka",
     "clientSoftwareVersion": "2.5", "openTime": "2026-01-01T00:00:00.000000000Z", "idleDuration": "1.5s",
     "inFlightRequests": {"hasMoreRequests": False}, "totalRequestStatistics": {"requestCount": "7"}}
]}  # fmt: skip


@contextmanager
def serving(page):
    """The files of the page, as the admin API serves them; `page` is the first of them."""
    folder = resources.files("broker.admin").joinpath("page")

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.partition("?")[0].removeprefix("/page/")
            content = page if name == "/" else folder.joinpath(name).read_text() if name[0] != "/" else ""
            self.send_response(200)
            self.send_header("content-type", TYPES.get(name.rpartition(".")[2], "text/html"))
            self.end_headers()
            self.wfile.write(content.encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def browse(
    folder,
    act="",
    replies=(),
    *,
    more=None,
    width=1300,
    place="",
    until="#clients table",
    watch=None,
    options=(),
    refused=None,
):
    """What the page has shown, and what it has sent and said while the script `act` ran, which may add to `seen`. `place`: the part
    of its URL from # on; `until`: what is there when it is drawn."""
    point = {"at": 1000.0, "in_use": 0, "cached": 0, "decisions": {}}
    of_shards = {"decisions": {"home": 1, "cached": 0, "rpc": 0}, "restarts": 2, "restart_in_s": None}
    totals = {"admitted": 5, "borrows": 1, "throttled": {"producer_byte_rate": {"requests": 7, "throttle_ms": 1}}}
    live = {
        **LIVE,
        "totals": {**LIVE["totals"], **totals},
        "series": [{**one, **point} for one in LIVE["series"][:2]],
        "shards": [{**row, **of_shards} for row in LIVE["shards"]],
        "limits": [
            {"text": "", "doc": "What it does.", "vocabulary": "kafka", "observable": True, **row}
            for row in LIVE["limits"]
        ],
        **(more or {}),
    }
    page = resources.files("broker.admin").joinpath("page", "index.html").read_text("utf-8")
    answers = {"live": live, "replies": replies, "tokens": TOKENS, "refusals": REFUSALS, "refused": refused or {}}
    answers["series"] = {
        "step_s": 6.0,
        "series": [{**LIVE["series"][0], **point, "at": 1000.0 - 6 * n} for n in range(290, 0, -1)],
    }
    answers |= {"watch": {**WATCH, **(watch or {})}, "listed": LISTED}
    stub = STUB % {name: json.dumps(answer).replace("<", "\\u003c") for name, answer in answers.items()}
    page = page.replace("<script", stub + "<script", 1).replace("</body>", THEN % (json.dumps(until), act) + "</body>")
    with serving(page) as url:
        if options:
            dom = dumped(folder, url + place, *options, f"--window-size={width},900")
            return json.loads(html.unescape(dom.partition('<pre id="result">')[2].partition("</pre>")[0]))
        page = _page()
        page.goes_on()
        page.looks(width=width)
        page.open(url + place)
        for _ in range(0, SHOWN_MS, STEP_MS):
            page.passes(STEP_MS)
            if (told := page.evaluate("document.getElementById('result')?.textContent")) is not None:
                return json.loads(told)
        raise AssertionError(f"it never came to its end: {page.text()}")


@cache
def _page():
    """A page for all tests of this process; each is a site of its own. To start a browser takes a second of processor time."""
    folder = _at_end.enter_context(TemporaryDirectory(ignore_cleanup_errors=True))
    return Page(_at_end.enter_context(started(Path(folder))))


def dumped(folder, url, *options):
    """The document as it is after four seconds, in a browser of its own."""
    command = [CHROMIUM, *OPTIONS, *options, f"--user-data-dir={folder}/profile", f"--virtual-time-budget={SHOWN_MS}"]
    run = subprocess.run([*command, "--dump-dom", url], capture_output=True, text=True, timeout=PATIENCE_S)
    return run.stdout
