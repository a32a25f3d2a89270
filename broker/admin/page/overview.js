// What happens now, in a user's words: connections, limits and how much of each is used.

import {REASONS, refusedOf, sparkline, throttledOf, THROTTLES} from "./charts.js";
import {$, bar, el, empty, parted, show, sum, table} from "./dom.js";
import {count, duration, level, perSecond, QUOTAS, use, utilisation} from "./quantities.js";

const colorOf = reason => `var(--${REASONS.includes(reason) ? reason : "ip_cap"})`;
const spelling = row => row.what === "connections" ? count : perSecond;
const useBar = (used, limit) => bar([[utilisation(used, limit), `var(--${level(used, limit)})`]]);
const useText = (used, limit, spell) => limit === null ? use(used, limit, spell) : el("b", {class: level(used, limit)}, use(used, limit, spell));
const onBroker = (live, row) => live.brokers > 1 ? `broker ${row.broker}` : "";

export function drawHeader(live, series) {
  const up = live.shards.filter(shard => shard.state === "up").length, all = live.shards.length;
  $("state").className = "pill " + (up === all ? "up" : "down");
  $("state").textContent = up === all ? `${all} shard${all > 1 ? "s" : ""} up` : `${up} of ${all} shards up`;
  const last = series.at(-1), facts = [`configuration version ${live.version}`, `up ${duration(live.uptime_s * 1000)}`,
    `${count(last?.requests || 0)} requests/s`, `${live.brokers > 1 ? `${live.brokers} brokers, ` : ""}listeners ${live.listeners.join(", ")}`];
  show("facts", ...facts.map(fact => el("span", {}, fact)));
  const refused = last ? refusedOf(last) : 0;
  document.title = refused ? `${perSecond(refused)} refused · Turnstile` : "Turnstile";
}

export function drawJournal({events_dropped, is_losing}) {
  $("journal").hidden = !events_dropped;
  const more = is_losing ? ", and more are being dropped now" : "";
  $("journal").textContent = `Journal: ${count(events_dropped)} events dropped since the start${more}. Audit and report lack them; the log says why.`;
}

const HELD_UP = {waiting: "waiting to be admitted", held: "held for their rate", muted: "muted by a quota"};
export function drawTiles(live, series) {
  const last = series.at(-1) || {admitted: 0, refused: {}, throttled: {}}, totals = live.totals;
  const aside = Object.entries(HELD_UP).filter(([name]) => totals[name]).map(([name, why]) => `${count(totals[name])} ${why}`);
  const cap = of => live.uses.find(row => row.what === "connections" && row.of === of);
  const capped = cap("cluster") || cap("broker"); // the fullest broker comes first
  const ofCap = capped && use(capped.used, capped.limit) + (live.brokers === 1 ? "" : capped.broker === null ? " on all brokers" : ` on broker ${capped.broker}`);
  const requests = sum(Object.values(totals.throttled).map(each => each.requests));
  const tiles = [
    ["Open connections", count(totals.connections), "", aside.join(", ") || ofCap || "no cap for all together", point => point.connections, "var(--core_rate)"],
    ["Admitted", count(last.admitted), "/s", `${count(totals.admitted)} since the start`, point => point.admitted, "var(--good)"],
    ["Refused", count(refusedOf(last)), "/s", `${count(sum(Object.values(totals.refused)))} since the start`, refusedOf, "var(--bad)"],
    ["Throttled requests", count(throttledOf(last)), "/s", `${count(requests)} since the start`, throttledOf, "var(--throttled)"],
  ];
  show("tiles", ...tiles.map(([name, value, unit, more, of, color]) =>
    el("div", {class: "card tile"}, el("div", {class: "name"}, name), el("div", {class: "value"}, value, unit && el("small", {}, unit)),
      el("div", {class: "more"}, more), sparkline(series, of, color))));
}

function limitText(row) {
  const [kind, ...name] = row.of.split(":"), what = row.what === "connections" ? "connections" : "new connections";
  const whose = kind === "ip" ? name.join(":") : kind === "user" ? `user ${name.join(":")}` : kind === "listener" ? `listener ${name.join(":")}` : kind === "ssl" ? "clients over TLS" : kind === "cluster" ? "the cluster" : "the broker";
  return `${what} of ${whose}`;
}
// How many limits are close to being reached, each on each broker once; "" if none is. As close_text of turnstile/use_text.py.
function closeText(close) {
  const [high, near, full] = ["high", "near", "full"].map(name => sum(close.map(row => row[name])));
  return [[full, "reached"], [near - full, "from 90 %"], [high - near, "from 80 %"]].filter(([n]) => n).map(([n, share]) => `${count(n)} ${share}`).join(", ");
}
// What a row opens: its address or user; null: nothing.
const opened = ({broker, of}) => of.startsWith("ip:") ? {broker, ip: of.slice(3)} : of.startsWith("user:") ? {broker, user: of.slice(5), client: ""} : null;
const FEW = 5, MOST = 9; // uses that are shown however small they are, and at most
// `opener(open, text)`: the name of a row that can be opened.
export function drawUses(live, opener) {
  const several = live.brokers > 1, told = closeText(live.close);
  const close = told ? el("div", {class: "rest", id: "close"}, `All limits, including those of addresses and clients: ${told}.`) : null;
  if (!live.uses.length) {
    const set = live.limits.some(limit => limit.set) ? "in use: no connection counts against one now" : "set: set one in the list of limits";
    return show("uses", empty(`No limit on connections is ${set}.`), close);
  }
  const rows = live.uses.filter((row, n) => n < FEW || !/^(ip|user):/.test(row.of) || (n < MOST && level(row.used, row.limit) !== "roomy"));
  show("uses", table([["limit", ""], ...(several ? [["broker", "n"]] : []), ["", several ? "b s" : "b"], ["used", "n t"]], rows.map(row => [
    el("span", {}, opened(row) ? opener(opened(row), limitText(row)) : limitText(row), el("span", {class: "by"}, ...parted(row.by))), ...(several ? [row.broker === null ? "all" : String(row.broker)] : []),
    useBar(row.used, row.limit), useText(row.used, row.limit, spelling(row))])),
    close,
    rows.length < live.uses.length ? el("div", {class: "rest"}, `The ${count(rows.length)} fullest are shown; open any other address or client below.`) : null);
}

export function drawReasons(live, series) {
  const counts = Object.entries(live.totals.refused).filter(([, n]) => n).sort((a, b) => b[1] - a[1]), now = series.at(-1)?.refused || {};
  if (!counts.length) return show("reasons", empty("Nothing has been refused."));
  show("reasons", table([["reason", "k"], ["", "b"], ["now", "n"], ["since the start", "n"]], counts.map(([reason, n]) => [
    el("span", {class: "key", style: `--c:${colorOf(reason)}`}, reason), bar([[n / counts[0][1], colorOf(reason)]]),
    perSecond(now[reason] || 0), count(n)])));
}

// `all`: every address that is counted apart, where the user asked for it, else null; `toggle()` asks for it or not.
export function drawAddresses(live, all, toggle, opener) {
  const known = live.refused_addresses, rows = all || live.top_refused;
  if (!rows.length) return show("ips", empty("No address has been refused."));
  const uses = new Map(live.top_refused.map(row => [row.ip, row])), most = rows[0].count;
  const made = table([["address", "k"], ["", "b"], ["refused", "n"], ["open", "n t"]], rows.map(row => {
    const parts = Object.entries(row.reasons).sort((a, b) => b[1] - a[1]), told = uses.get(row.ip);
    return [el("span", {class: "mono"}, opener({broker: told?.uses.length ? fullestOf(told).broker : 0, ip: row.ip}, row.ip)), bar(parts.map(([reason, n]) => [n / most, colorOf(reason)]), parts.map(([reason, n]) => `${reason} ${n}`).join(", ")),
      el("span", row.error ? {title: `at least ${row.count - row.error}`} : {}, (row.error ? "≤ " : "") + count(row.count)),
      told ? openOf(live, told) : el("span", {class: "dim"}, "–")];
  }));
  const refused = rows => sum(rows.map(row => row.count));
  const others = Math.max(0, known.others_refused + refused(live.top_refused) - refused(rows));  // `all` was asked for later
  const hidden = known.known - rows.length, of = `${known.more ? "more than " : ""}${count(known.known)}`;
  const rest = hidden > 0 ? `${count(rows.length)} of ${of} addresses are shown; the others were refused ${count(others)} times.`
    : all ? `All ${of} addresses that are counted one by one are shown.` : "";
  show("ips", made, rest ? el("div", {class: "rest"}, rest, el("button", {class: "small", onclick: toggle}, all ? "Show fewer" : "Show all")) : null);
}
const fullestOf = row => row.uses.reduce((a, b) => utilisation(b.used, b.limit) > utilisation(a.used, a.limit) ? b : a);
// What an address has open beside its cap, on the broker where it is closest to that.
function openOf(live, row) {
  if (!row.uses.length) return count(row.open);
  const fullest = fullestOf(row);
  return el("span", {}, useText(fullest.used, fullest.limit, count), live.brokers > 1 ? el("span", {class: "by"}, onBroker(live, fullest)) : null);
}

const clientText = row => [row.user && "user " + row.user, row.client_id && "client " + row.client_id].filter(Boolean).join(" ") || "any";
export function drawClients(live, series, opener) {
  const rows = [...live.throttled, ...live.within_quota], total = sum(Object.values(live.totals.throttled).map(each => each.requests));
  const told = `${count(throttledOf(series.at(-1) || {throttled: {}}))} requests/s are throttled, ${count(total)} since the start`;
  if (!rows.length) return show("clients", empty(total ? `No client uses a quota now; ${count(total)} requests were throttled since the start.` : "No client has been throttled, and none uses a quota now."));
  show("clients", table([["client", ""], ["quota", "h k"], ["", "b s"], ["used", "n t"], ["delay", "n"]], rows.map(row => [
    el("span", {class: "mono"}, opener({broker: row.broker, user: row.user, client: row.client_id}, clientText(row)), live.brokers > 1 ? el("span", {class: "by"}, onBroker(live, row)) : null),
    el("span", {title: row.quota}, THROTTLES[row.quota]), row.limit === null ? "" : useBar(row.value, row.limit),
    useText(row.value, row.limit, QUOTAS[row.quota]), row.throttle_ms ? duration(row.throttle_ms) : "–"])),
    el("div", {class: "rest"}, told));
}
