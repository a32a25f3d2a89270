// An opened row: one address or client on one broker, its connections, rates, refusals and throttles with their limits over time.

import {ask, call} from "./admin.js";
import {clock, REASONS, THROTTLES} from "./charts.js";
import {$, el, empty, show, sum, svg, table} from "./dom.js";
import {line, nice, spanOf, stacked} from "./plot.js";
import {count, duration, level, perSecond, QUOTAS, use} from "./quantities.js";
import {isSame, names} from "./state.js";

const LISTED = 20, LISTED_EVERY = 5000, FINE = 5, POINTS = 300, HEIGHT = 64, LEFT = 54, TOP = 8;
const LIST = "/redpanda.core.admin.v2.ClusterService/ListKafkaConnections";
let shown = null, step = 0, points = [], listed = null, listedAt = 0;

export const nameOf = open => open.ip || [open.user && "user " + open.user, open.client && "client " + open.client].filter(Boolean).join(" ");

// `brokers`: how many there are; `minutes`: shown.
export async function drawDetail(open, minutes, brokers, opener) {
  $("detail").hidden = !open;
  if (!open) { shown = null; return; }
  if (!isSame(open, shown)) { shown = open; points = []; listed = null; listedAt = 0; $("detail-name").textContent = nameOf(open); show("detail-body"); }
  const kept = minutes > FINE ? 30 : FINE;
  if (step !== kept) { step = kept; points = []; }
  const query = new URLSearchParams([...names(open), ["minutes", kept], ["since", points.length ? points.at(-1).at : 0]]);
  let told;
  try { told = await ask("/v1/watch?" + query); }
  catch (error) { // a link may name what is no address, or a broker that there is no more
    if (error.status === 400 && isSame(open, shown)) { $("detail-facts").textContent = ""; return show("detail-body", empty(error.message)); }
    throw error;
  }
  if (!isSame(open, shown)) return; // another row was opened meanwhile
  const back = told.points.length && points.length && told.points[0].at <= points.at(-1).at;
  points = [...(back ? [] : points), ...told.points].slice(-POINTS);
  if (Date.now() - listedAt >= LISTED_EVERY) { listed = await connectionsOf(open); listedAt = Date.now(); }
  if (isSame(open, shown)) draw(open, told, 60 * minutes, brokers, opener);
}

const text = value => JSON.stringify(value);
async function connectionsOf(open) {
  const tests = open.ip ? [`source.ip_address = ${text(open.ip)}`]
    : [open.user && `authentication_info.user_principal = ${text(open.user)}`, open.client && `client_id = ${text(open.client)}`].filter(Boolean);
  return call(LIST, {filter: [`node_id = ${open.broker}`, ...tests].join(" AND "), orderBy: "open_time desc", pageSize: LISTED});
}

const WORDS = {connections: "open connections", new_connections: "new connections a second", ...THROTTLES};
const spell = what => what === "connections" ? count : QUOTAS[what] || perSecond;
function draw(open, told, most, brokers, opener) {
  const series = points.filter(point => point.at > points.at(-1).at - most), last = series.at(-1);
  const facts = [brokers > 1 || open.broker ? `on broker ${open.broker}` : "", `watched since ${clock(told.began)}`,
    told.refused ? `${count(told.admitted)} admitted and ${count(sum(Object.values(told.refused)))} refused since the start` : ""];
  $("detail-facts").textContent = facts.filter(Boolean).join(", ");
  if (!last) return show("detail-body", empty("There are no samples yet."));
  const whats = [...new Set(series.flatMap(point => Object.keys(point.used)))];
  const charts = whats.map(what => plot(series, most, {
    name: WORDS[what] || what, value: last.used[what], limit: last.limits[what], spell: spell(what),
    of: point => point.used[what], limitOf: point => point.limits[what]}));
  if (open.ip) {
    const reasons = REASONS.filter(reason => series.some(point => point.refused[reason]));
    charts.push(plot(series, most, {name: "admitted a second", value: last.admitted, spell: perSecond, of: point => point.admitted}));
    charts.push(plot(series, most, {name: "refused a second", value: sum(Object.values(last.refused)), spell: perSecond, of: point => sum(Object.values(point.refused)),
      layers: reasons.map(reason => ({of: point => point.refused[reason] || 0, color: `var(--${reason})`})), bad: true}));
  }
  for (const quota of [...new Set(series.flatMap(point => Object.keys(point.throttle_ms)))])
    charts.push(plot(series, most, {name: `${WORDS[quota] || quota}: throttle time`, value: last.throttle_ms[quota] || 0, spell: duration, of: point => point.throttle_ms[quota] || 0, bad: true}));
  show("detail-body", whats.length ? null : empty("No quota holds for this client, or it has used none lately."),
    el("div", {class: "plots"}, ...charts), connectionTable(open, opener));
}
function plot(series, most, {name, value, limit, spell, of, limitOf = () => undefined, layers, bad}) {
  const known = series.filter(point => of(point) !== undefined), limited = series.filter(point => limitOf(point) !== undefined);
  const now = value === undefined ? "–" : limit === undefined ? spell(value) : use(value, limit, spell);
  const top = nice(Math.max(...known.map(of), ...limited.map(limitOf), 1)), width = 260, span = spanOf(series, most), end = series.at(-1).at;
  const drawn = svg("svg", {viewBox: `0 0 ${LEFT + width + 4} ${TOP + HEIGHT + 6}`, role: "img", "aria-label": `${name}: ${now}`});
  const group = svg("g", {transform: `translate(${LEFT},${TOP})`});
  for (const part of [0, .5, 1]) group.append(svg("line", {x1: 0, x2: width, y1: HEIGHT * (1 - part), y2: HEIGHT * (1 - part), class: "grid"}));
  for (const part of [0, 1]) group.append(svg("text", {x: -6, y: HEIGHT * (1 - part) + 4, "text-anchor": "end"}, spell(top * part)));
  if (layers && known.length > 1) group.append(...stacked(known, layers, width, HEIGHT, top, span));
  if (known.length) group.append(line(known, of, width, HEIGHT, top, bad ? "var(--bad)" : "var(--good)", span, end));
  if (limited.length) {
    const dashed = line(limited, limitOf, width, HEIGHT, top, "var(--dim)", span, end);
    dashed.setAttribute("class", "limit-line");
    group.append(dashed);
  }
  drawn.append(group);
  return el("figure", {}, el("figcaption", {}, name, " ", el("b", limit === undefined || value === undefined ? {} : {class: level(value, limit)}, now)), drawn);
}
function connectionTable(open, opener) {
  if (!listed) return null;
  if (!listed.connections.length) return el("div", {class: "rest"}, "No connection is open.");
  const total = Number(listed.totalSize), address = ({ipAddress, port}) => ipAddress.includes(":") ? `[${ipAddress}]:${port}` : `${ipAddress}:${port}`;
  const made = table([[open.ip ? "client" : "address", ""], ["software", "h"], ["open for", "n"], ["idle", "n"], ["requests", "n"]], listed.connections.map(each => [
    open.ip ? el("span", {class: "mono"}, each.clientId || "–") : opener({broker: open.broker, ip: each.source.ipAddress}, address(each.source)),
    `${each.clientSoftwareName} ${each.clientSoftwareVersion}`.trim() || "–", duration(Math.max(0, Date.now() - Date.parse(each.openTime))),
    each.inFlightRequests.hasMoreRequests ? "busy" : duration(1000 * parseFloat(each.idleDuration)), count(Number(each.totalRequestStatistics.requestCount))]));
  return el("div", {class: "list"}, made,
    total > listed.connections.length ? el("div", {class: "rest"}, `The ${count(listed.connections.length)} newest of ${count(total)} connections are shown.`) : null);
}
