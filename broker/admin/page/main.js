// The loop of the live page: asks once a second and draws. What the user looks at is in the URL (state.js).

import {ask} from "./admin.js";
import {drawHistory} from "./history.js";
import {drawRates} from "./charts.js";
import {drawDetail} from "./detail.js";
import {$, el} from "./dom.js";
import {drawInternals} from "./internals.js";
import {drawLimits} from "./limits.js";
import {drawObserved} from "./observed.js";
import {drawAddresses, drawClients, drawHeader, drawJournal, drawReasons, drawTiles, drawUses} from "./overview.js";
import {drawQuotas} from "./quotas.js";
import {isSame, named, read, SPANS, TABS, written} from "./state.js";

const SECONDS = 300, COARSE = 30, LONG_EVERY = 6000;
let series = [], changes = [], version = -1, paused = false, failures = 0, state = read(location.hash);
let long = [], longAsked = 0; // points of six seconds each, of half an hour, while they are looked at

function joined(before, more, most) {
  const back = more.length && before.length && more[0].at <= before.at(-1).at; // the clock was set back
  return [...(back ? [] : before), ...more].slice(-most);
}
async function refresh() {
  const live = await ask("/v1/live?since=" + (series.length ? series.at(-1).at : 0));
  if (live.version !== version) {
    changes = (await ask("/v1/config/history?limit=30")).history;
    drawQuotas((await ask("/v1/quotas")).quotas);
    version = live.version;
    drawHistory(changes);
  }
  series = joined(series, live.series, SECONDS);
  drawHeader(live, series);
  drawJournal(live.journal);
  if (state.tab === "internals") return drawInternals(live, await ask("/v1/tokens"));
  const all = state.all ? (await ask("/v1/refusals?by=ip")).refusals : null;
  drawTiles(live, series);
  drawRates(await shownSeries(), changes, 60 * state.span);
  $("find-broker").hidden = live.brokers < 2;
  drawUses(live, opener);
  drawReasons(live, series);
  drawAddresses(live, all, () => go({all: !state.all}), opener);
  drawObserved(live.observed);
  drawClients(live, series, opener);
  drawLimits(live.limits, live.observed);
  await drawDetail(state.open, state.span, live.brokers, opener);
}
const keyOf = open => written({tab: "overview", span: 5, open});
// The name of a row that can be opened: {broker, ip} or {broker, user, client}.
function opener(open, text) {
  const isOpen = isSame(open, state.open);
  return el("button", {class: "open", "data-key": keyOf(open), "aria-expanded": String(Boolean(isOpen)), "aria-controls": "detail", onclick: () => go({open: isOpen ? null : open})}, text);
}
// Half an hour is asked for by itself; its last seconds are those of the other series, so that the chart's end moves with them.
async function shownSeries() {
  if (state.span < COARSE) return series;
  if (Date.now() - longAsked >= LONG_EVERY) {
    long = joined(long, (await ask(`/v1/series?minutes=${COARSE}&since=${long.length ? long.at(-1).at : 0}`)).series, SECONDS);
    longAsked = Date.now();
  }
  return [...long, ...series.filter(point => !long.length || point.at > long.at(-1).at)];
}
async function loop() {
  if (!paused && !document.hidden) {
    try { await refresh(); failures = 0; }
    catch (error) {
      console.error(error);
      if (++failures > 1) { $("state").className = "pill down"; $("state").textContent = "no answer, trying again"; }
    }
  }
  setTimeout(loop, 1000);
}
function go(more) {
  location.hash = written({...state, ...more});
}
function show() {
  state = read(location.hash);
  for (const each of TABS) {
    $(each).hidden = each !== state.tab;
    $(`tab-${each}`).setAttribute("aria-selected", each === state.tab);
  }
  $("detail").hidden = !state.open;
  for (const each of SPANS) $(`span-${each}`).setAttribute("aria-pressed", each === state.span);
}
for (const name of TABS) $(`tab-${name}`).addEventListener("click", () => go({tab: name}));
for (const minutes of SPANS) $(`span-${minutes}`).addEventListener("click", () => go({span: minutes}));
addEventListener("hashchange", () => {
  const before = state.open;
  show();
  refresh().catch(console.error);
  if (state.open && !isSame(before, state.open)) $("detail").focus();
  if (before && !state.open) [...document.querySelectorAll("button.open")].find(one => one.dataset.key === keyOf(before))?.focus();
});
$("detail-close").addEventListener("click", () => go({open: null}));
$("detail").addEventListener("keydown", event => event.key === "Escape" && go({open: null}));
$("find").addEventListener("submit", event => {
  event.preventDefault();
  const open = named($("find-name").value, Number($("find-broker").value) || 0);
  if (open) go({open});
});
$("pause").addEventListener("click", () => {
  paused = !paused;
  $("pause").textContent = paused ? "Resume" : "Pause";
  $("pause").setAttribute("aria-pressed", paused);
});
show();
loop();
