"""The live page in a browser, with an admin API of a few lines behind it: what it sends, and what it says."""

import html
import json
import shutil
import subprocess
from importlib import resources

import pytest
from live_view import LIVE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
# What the page asks is answered from constants; each PUT is kept, and answered with the next of the replies.
STUB = """
<script>
const puts = [], said = [], replies = %(replies)s, answers = {
  "/v1/live": %(live)s, "/v1/tokens": {pools: []}, "/v1/quotas": {quotas: []}, "/v1/config/history": {history: []}};
window.fetch = async (path, options = {}) => {
  if (options.method === "PUT") {
    puts.push([path, JSON.parse(options.body)]);
    const [status, body] = replies.shift();
    return new Response(body, {status});
  }
  return new Response(JSON.stringify(answers[path.split("?")[0]]));
};
const fill = async (form, ...values) => {
  [...form.querySelectorAll("input, select")].forEach((field, n) => field.value = values[n]);
  form.requestSubmit();
  await new Promise(done => setTimeout(done, 50));
  said.push(document.getElementById("say").textContent);
};
const setQuota = value => fill(document.querySelector("#quotas form"), "user=alice", "producer_byte_rate", value);
</script>
"""
THEN = """
<script>
setTimeout(async () => {
  const text = document.body.innerText;
  %s
  const told = JSON.stringify({puts, said, text});
  document.body.replaceChildren(Object.assign(document.createElement("pre"), {id: "result", textContent: told}));
}, 500);
</script>
"""
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")


def browse(folder, act="", replies=()):
    """What the page has shown, and what it has sent and said while the script `act` ran."""
    point = {"at": 1000.0, "in_use": 0, "cached": 0, "decisions": {}}
    more = {"decisions": {"home": 1, "cached": 0, "rpc": 0}, "restarts": 2, "restart_in_s": None}
    totals = {"admitted": 5, "reclaims": 0, "throttled": {"producer_byte_rate": {"requests": 7, "throttle_ms": 1}}}
    live = {
        **LIVE,
        "totals": {**LIVE["totals"], **totals},
        "series": [{**one, **point} for one in LIVE["series"][:2]],
        "shards": [{**row, **more} for row in LIVE["shards"]],
        "limits": [{"text": "", "doc": "What it does.", "vocabulary": "kafka", **row} for row in LIVE["limits"]],
        "top_refused": [{**row, "error": 0, "open": 1} for row in LIVE["top_refused"]],
    }
    page = resources.files("broker.admin").joinpath("live.html").read_text("utf-8")
    stub = STUB % {"live": json.dumps(live), "replies": json.dumps(replies)}
    file = folder / "page.html"
    file.write_text(page.replace("<script>", stub + "<script>", 1).replace("</body>", THEN % act + "</body>"))
    command = [CHROMIUM, *OPTIONS, f"--user-data-dir={folder}/profile", "--virtual-time-budget=4000", "--dump-dom"]
    run = subprocess.run([*command, file.as_uri()], capture_output=True, text=True, timeout=60)
    return json.loads(html.unescape(run.stdout.partition('<pre id="result">')[2].partition("</pre>")[0]))


def test_what_is_no_number_is_not_sent_as_a_quota(tmp_path):
    values = ["1MB", "-5", "NaN", "1e400", "1,5"]
    result = browse(tmp_path, f"for (const value of {json.dumps(values)}) await setQuota(value);")
    assert result["puts"] == []
    assert result["said"] == [f'"{value}" is not a number: write 1 MB/s as 1048576.' for value in values]


def test_what_the_server_answers_is_told_and_a_refusal_is_not_taken_for_done(tmp_path):
    replies = [
        (200, '{"config_version": 8}'),
        (400, '{"producer_byte_rate": "Quota must be greater than 0"}'),
        (401, '{"message": "this admin API needs its token.", "code": 401}'),
        (502, ""),
    ]
    result = browse(tmp_path, "for (const value of [1048576, 5, 6, 7]) await setQuota(value);", replies)
    assert result["puts"][0] == [
        "/v1/quotas", {"alter": [{"entity": {"user": "alice"}, "set": {"producer_byte_rate": 1048576}}]},
    ]  # fmt: skip
    assert result["said"] == [
        "user=alice: producer_byte_rate = 1048576, in force on every shard since version 8",
        "Quota must be greater than 0",
        "this admin API needs its token.",
        "The cluster answered with 502.",
    ]


def test_throttled_clients_restarts_and_brokers_own_limits_are_shown_and_these_are_changed_there(tmp_path):
    act = """
      document.querySelector('[aria-label="Change max.connections (broker 2)"]').click();
      await fill(document.querySelector("#limits form"), "60");
    """
    result = browse(tmp_path, act, [(200, '{"config_version": 8}')])
    for shown in ("client app", "client batch", "31 s", "20 ms", "50 %", "7 in all", "max.connections (broker 2)"):
        assert shown in result["text"]
    assert result["puts"] == [["/v1/cluster_config?broker=2", {"upsert": {"max.connections": "60"}, "remove": []}]]
