// What the user looks at, as the part of the URL after #: it can be sent as a link, and the browser goes back through it.

export const TABS = ["overview", "internals"], SPANS = [1, 5, 30];

// {tab; span: minutes; all: every refused address is listed}.
export function read(hash) {
  const told = new URLSearchParams(hash.replace(/^#/, ""));
  const tab = TABS.find(name => told.get("tab") === name || told.has(name)) || "overview";
  const span = SPANS.find(minutes => told.get("minutes") === String(minutes)) || 5;
  return {tab, span, all: told.get("addresses") === "all"};
}
export function written({tab, span, all}) {
  const told = new URLSearchParams();
  if (tab !== "overview") told.set("tab", tab);
  if (span !== 5) told.set("minutes", span);
  if (all) told.set("addresses", "all");
  return told.size ? "#" + told : "#";
}
