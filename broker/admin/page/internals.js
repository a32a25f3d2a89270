// How shards share the limits, in the words of docs/internals/tokens.md: tokens, pools, homes, holders, borrows, reclaims.

import {bar, el, empty, show, sum, table} from "./dom.js";
import {count, perSecond, percent} from "./quantities.js";

const PATHS = {home: "at the pool's home shard", cached: "with a token cached on the accepting shard", rpc: "by asking the home of a pool"};

export function drawInternals(live, tokens) {
  drawDecisions(live);
  drawPools(tokens, live.brokers > 1);
  drawShards(live);
}
function drawDecisions({totals}) {
  const decided = sum(Object.values(totals.decisions)) || 1;
  const rows = Object.entries(PATHS).map(([path, where]) => [`decided ${path}`, where, count(totals.decisions[path]), percent(Math.round(100 * totals.decisions[path] / decided))]);
  const {tokens} = totals;
  show("decisions", table([["decision", "k"], ["where", ""], ["since the start", "n"], ["share", "n"]], rows),
    el("div", {class: "rest"}, `${count(tokens.in_use)} tokens in use, ${count(tokens.cached)} cached, ${count(tokens.pools)} pools, ${count(totals.borrows)} borrows, ${count(totals.reclaims)} reclaims`));
}
function drawPools({pools}, several) {
  const used = pools.filter(pool => pool.in_use || pool.cached).slice(0, 20);
  if (!used.length) return show("pools", empty("No token is in use."));
  show("pools", table([["pool", ""], ["", "b"], ["in use", "n"], ["cached", "n"], ["cap", "n"], ["by shard: in use + cached", "h"]], used.map(pool => {
    const full = Math.max(pool.cap, pool.in_use + pool.cached, 1);
    return [el("span", {class: "mono", title: pool.limit}, (several && pool.broker !== null ? `broker ${pool.broker} ` : "") + pool.kind + (pool.key ? " " + pool.key : "")),
      pool.cap === null ? "" : bar([[pool.in_use / full, "var(--ip_rate)"], [pool.cached / full, "color-mix(in srgb, var(--ip_rate) 35%, transparent)"]]),
      count(pool.in_use), count(pool.cached), pool.cap === null ? el("span", {class: "dim"}, "–") : count(pool.cap),
      el("span", {class: "dim"}, pool.holders.map(({shard, in_use, cached}) => `${shard}${shard === pool.home ? " (home)" : ""}: ${in_use} + ${cached}`).join(", "))];
  })));
}
function drawShards(live) {
  const columns = [["broker/shard", "h"], ["state", "h"], ["pid", "n"], ["open", "n"], ["admitted", "n"], ["refused", "n"], ["in use", "n"], ["cached", "n"],
    ["home / cached / asked", "b"], ["restarts", "n"], ["version", "n"]];
  show("shards", table(columns, live.shards.map(row => {
    const decided = sum(Object.values(row.decisions)) || 1, part = path => row.decisions[path] / decided;
    return [`${row.broker}/${row.shard}`, el("span", {class: row.state === "up" ? "good" : "bad"}, row.state), el("span", {class: "dim"}, String(row.pid)),
      count(row.connections), perSecond(row.admitted_per_s), perSecond(row.refused_per_s), count(row.tokens.in_use), count(row.tokens.cached),
      bar([[part("home"), "var(--good)"], [part("cached"), "color-mix(in srgb, var(--good) 45%, transparent)"], [part("rpc"), "var(--ip_rate)"]], Object.entries(row.decisions).map(([path, n]) => `${path} ${n}`).join(", ")),
      row.restart_in_s === null ? String(row.restarts) : el("span", {class: "bad"}, `${row.restarts}, next in ${row.restart_in_s} s`),
      row.config_version === live.version ? String(row.config_version) : el("span", {class: "bad"}, String(row.config_version))];
  })));
}
