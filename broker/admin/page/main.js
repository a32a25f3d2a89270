// The loop of the live page: asks once a second and draws; the tabs, and what the user asked to see more of.

import {ask} from "./admin.js";
import {drawRates, KEPT} from "./charts.js";
import {drawHistory, drawLimits, drawQuotas} from "./configuration.js";
import {$} from "./dom.js";
import {drawInternals} from "./internals.js";
import {drawAddresses, drawClients, drawHeader, drawJournal, drawObserved, drawReasons, drawTiles, drawUses} from "./overview.js";

const TABS = ["overview", "internals"];
let series = [], changes = [], version = -1, paused = false, failures = 0, tab = "overview", allAddresses = false;

async function refresh() {
  const live = await ask("/v1/live?since=" + (series.length ? series.at(-1).at : 0));
  if (live.version !== version) {
    changes = (await ask("/v1/config/history?limit=30")).history;
    drawQuotas((await ask("/v1/quotas")).quotas);
    version = live.version;
    drawHistory(changes);
  }
  if (live.series.length && series.length && live.series[0].at <= series.at(-1).at) series = [];  // the clock was set back
  series = [...series, ...live.series].slice(-KEPT);
  drawHeader(live, series);
  drawJournal(live.journal);
  if (tab === "internals") return drawInternals(live, await ask("/v1/tokens"));
  const all = allAddresses ? (await ask("/v1/refusals?by=ip")).refusals : null;
  drawTiles(live, series);
  drawRates(series, changes);
  drawUses(live);
  drawReasons(live, series);
  drawAddresses(live, all, () => { allAddresses = !allAddresses; refresh(); });
  drawObserved(live.observed);
  drawClients(live, series);
  drawLimits(live.limits);
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
function choose(name) {
  tab = TABS.includes(name) ? name : "overview";
  for (const each of TABS) {
    $(each).hidden = each !== tab;
    $(`tab-${each}`).setAttribute("aria-selected", each === tab);
  }
}
for (const name of TABS) $(`tab-${name}`).addEventListener("click", () => { location.hash = name; });
addEventListener("hashchange", () => { choose(location.hash.slice(1)); refresh(); });
$("pause").addEventListener("click", () => {
  paused = !paused;
  $("pause").textContent = paused ? "Resume" : "Pause";
  $("pause").setAttribute("aria-pressed", paused);
});
choose(location.hash.slice(1));
loop();
