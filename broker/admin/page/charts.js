// The charts of new connections and of throttled requests: admitted, refused and throttled above each other, each on its own scale,
// the newest at the right.

import {$, el, sum, svg} from "./dom.js";
import {line, nice, spanOf, stacked, x} from "./plot.js";
import {count, perSecond} from "./quantities.js";

const SHORT = 120, LEFT = 48, RIGHT = 8, GAP = 30, HEIGHTS = {admitted: 80, refused: 110, throttled: 80}, TOP = 18, TITLED = 110;
export const THROTTLES = {producer_byte_rate: "produce", consumer_byte_rate: "fetch", request_percentage: "request time", controller_mutation_rate: "mutations"};
export const throttleColor = quota => `var(--${quota in THROTTLES ? quota : "throttled"})`;
export const REASONS = ["ip_cap", "user_cap", "user_rate", "ssl_cap", "cluster_cap", "cluster_rate", "broker_cap", "listener_cap", "ip_rate", "core_rate", "fd_limit", "shard_unavailable", "proxy_header"];
export const refusedOf = point => sum(Object.values(point.refused));
export const throttledOf = point => sum(Object.values(point.throttled));
export const clock = at => new Date(at * 1000).toLocaleTimeString([], {hour12: false});

export function sparkline(points, of, color) {
  const drawn = svg("svg", {viewBox: "0 0 300 40", preserveAspectRatio: "none", "aria-hidden": "true"});
  if (points.length < 2) return drawn;
  const now = points.at(-1).at, recent = points.filter(point => point.at > now - SHORT), span = spanOf(recent, SHORT);
  const top = Math.max(...recent.map(of), 1) * 1.15, path = line(recent, of, 300, 38, top, color, span);
  path.setAttribute("vector-effect", "non-scaling-stroke");
  drawn.append(svg("path", {d: `${path.getAttribute("d")}L300,40L${x(recent[0].at, now, 300, span)},40Z`, style: `fill:${color}`, "fill-opacity": .13}), path);
  return drawn;
}

let shown = {series: [], changes: [], most: 300};
// `most`: seconds to show.
export function drawRates(all, changes, most) {
  const series = all.filter(point => point.at > all.at(-1).at - most); // empty if `all` is
  shown = {series, changes, most};
  const card = $("rates"), quotas = [...new Set(series.flatMap(point => Object.keys(point.throttled)))].sort(), seen = REASONS.filter(reason => series.some(point => point.refused[reason]));
  const legend = [["admitted", "var(--good)"], ...seen.map(reason => ["refused: " + reason, `var(--${reason})`]),
    ...quotas.map(quota => ["throttled: " + (THROTTLES[quota] || quota), throttleColor(quota)])];
  card.querySelector(".legend").replaceChildren(...legend.map(([name, color]) => el("span", {class: "key", style: `--c:${color}`}, name)));
  if (!card.querySelector("svg")) {
    card.append(svg("svg", {role: "img", "aria-label": "Connections admitted and refused, and requests throttled, a second"}), el("div", {class: "tip"}));
    card.querySelector("svg").addEventListener("pointermove", point => hover(point.offsetX));
    card.querySelector("svg").addEventListener("pointerleave", () => hover(null));
  }
  const drawn = card.querySelector("svg"), width = drawn.clientWidth - LEFT - RIGHT, span = spanOf(series, most);
  const below = TOP + HEIGHTS.admitted + GAP, last = below + HEIGHTS.refused + GAP, bottom = last + HEIGHTS.throttled;
  drawn.style.height = `${bottom + 22}px`;
  const admitted = panel("admitted", TOP, width, nice(Math.max(4, ...series.map(point => point.admitted))));
  const refused = panel("refused", below, width, nice(Math.max(4, ...series.map(refusedOf))));
  const throttled = panel("throttled", last, width, nice(Math.max(4, ...series.map(throttledOf))));
  drawn.replaceChildren(admitted.group, refused.group, throttled.group);
  if (series.length < 2) return;
  const layers = [{of: point => point.admitted, color: "color-mix(in srgb, var(--good) 18%, transparent)"}];
  admitted.group.append(...stacked(series, layers, width, HEIGHTS.admitted, admitted.top, span), line(series, point => point.admitted, width, HEIGHTS.admitted, admitted.top, "var(--good)", span));
  refused.group.append(...stacked(series, seen.map(reason => ({of: point => point.refused[reason] || 0, color: `var(--${reason})`})), width, HEIGHTS.refused, refused.top, span));
  throttled.group.append(...stacked(series, quotas.map(quota => ({of: point => point.throttled[quota] || 0, color: throttleColor(quota)})), width, HEIGHTS.throttled, throttled.top, span));
  drawn.append(times(series, changes, width, span, bottom));
}
function panel(name, y, width, top) {
  const height = HEIGHTS[name], group = svg("g", {transform: `translate(${LEFT},${y})`});
  for (const part of [0, .5, 1]) {
    const at = height - part * height;
    group.append(svg("line", {x1: 0, x2: width, y1: at, y2: at, class: "grid"}), svg("text", {x: -8, y: at + 4, "text-anchor": "end"}, count(top * part)));
  }
  group.append(svg("text", {x: 0, y: -6, class: "title"}, `${name === "throttled" ? "throttled requests" : name}, a second`));
  return {group, top};
}
// The axis of time, the changes of the configuration, and the line under the pointer, over all three charts.
function times(series, changes, width, span, bottom) {
  const now = series.at(-1).at, group = svg("g", {transform: `translate(${LEFT},0)`}), step = span <= 90 ? 15 : span <= 180 ? 30 : span <= 360 ? 60 : 300;
  for (let ago = step; ago < span; ago += width < 420 ? 2 * step : step)
    group.append(svg("text", {x: x(now - ago, now, width, span), y: bottom + 18, "text-anchor": "middle"}, ago % 60 ? `${ago} s ago` : `${ago / 60} min ago`));
  let labelled = Infinity; // the newest change comes first; labels that would touch, or touch the title, are left out
  for (const change of changes.filter(change => change.version > 1 && change.at > now - span && change.at <= now)) {
    const at = x(change.at, now, width, span);
    group.append(svg("line", {x1: at, x2: at, y1: TOP, y2: bottom, class: "mark"}));
    if (labelled - at < 28 || at < TITLED) continue;
    group.append(svg("text", {x: at, y: TOP - 6, "text-anchor": "middle"}, "v" + change.version));
    labelled = at;
  }
  group.append(svg("line", {y1: TOP, y2: bottom, class: "cursor"}));
  return group;
}
function hover(offset) {
  const card = $("rates"), tip = card.querySelector(".tip"), cursor = card.querySelector(".cursor"), {series} = shown;
  if (!cursor) return;
  const width = card.querySelector("svg").clientWidth - LEFT - RIGHT, now = series.at(-1).at, span = spanOf(series, shown.most);
  const at = offset === null ? null : now - (width - (offset - LEFT)) / width * span;
  const point = at && series.reduce((best, one) => Math.abs(one.at - at) < Math.abs(best.at - at) ? one : best);
  const visible = point && Math.abs(point.at - at) < Math.max(5, span / 60);
  tip.style.visibility = cursor.style.visibility = visible ? "visible" : "hidden";
  if (!visible) return;
  const place = x(point.at, now, width, span);
  cursor.setAttribute("x1", place); cursor.setAttribute("x2", place);
  const rows = [["admitted", perSecond(point.admitted)], ...Object.entries(point.refused).map(([reason, n]) => [reason, perSecond(n)]),
    ...Object.entries(point.throttled).map(([quota, n]) => ["throttled: " + (THROTTLES[quota] || quota), perSecond(n)]), ["open", count(point.connections)]];
  tip.replaceChildren(el("b", {}, clock(point.at)), ...rows.map(([name, value]) => el("div", {}, el("span", {class: "dim"}, name), el("span", {}, value))));
  tip.style.left = Math.min(place + LEFT + 26, card.clientWidth - tip.offsetWidth - 12) + "px";
}
addEventListener("resize", () => shown.series.length && drawRates(shown.series, shown.changes, shown.most));
