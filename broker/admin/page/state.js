// What the user looks at, as the part of the URL after #: it can be sent as a link, and the browser goes back through it.

export const TABS = ["overview", "internals"], SPANS = [1, 5, 30];

// {tab; span: minutes; all: every refused address is listed; open: the row that is opened, {broker, ip} or {broker, user, client}, or null}.
export function read(hash) {
  const told = new URLSearchParams(hash.replace(/^#/, ""));
  const tab = TABS.find(name => told.get("tab") === name || told.has(name)) || "overview";
  const span = SPANS.find(minutes => told.get("minutes") === String(minutes)) || 5;
  return {tab, span, all: told.get("addresses") === "all", open: opened(told)};
}
function opened(told) {
  const broker = /^\d{1,9}$/.test(told.get("broker")) ? Number(told.get("broker")) : 0;
  if (told.get("ip")) return {broker, ip: told.get("ip")};
  if (told.get("user") || told.get("client-id")) return {broker, user: told.get("user") || "", client: told.get("client-id") || ""};
  return null;
}
export function written({tab, span, all, open}) {
  const told = new URLSearchParams();
  if (tab !== "overview") told.set("tab", tab);
  if (span !== 5) told.set("minutes", span);
  if (all) told.set("addresses", "all");
  if (open) for (const [name, value] of names(open)) told.set(name, value);
  return told.size ? "#" + told : "#";
}
// The row that a person names: an address or a client id, or ip=, user= or client-id= before either.
const ADDRESS = /^(\d{1,3}(\.\d{1,3}){3}|[0-9a-f]*:[0-9a-f:.]*)$/i;
export function named(text, broker) {
  const [, kind, name] = text.trim().match(/^(ip|user|client-id)=(.+)$/) || [null, ADDRESS.test(text.trim()) ? "ip" : "client-id", text.trim()];
  if (!name) return null;
  return kind === "ip" ? {broker, ip: name} : {broker, user: kind === "user" ? name : "", client: kind === "user" ? "" : name};
}
// The parameters that name an opened row, in the URL and in requests to the admin API.
export const names = open => Object.entries({ip: open.ip, user: open.user, "client-id": open.client, broker: open.broker || ""}).filter(([, value]) => value);
export const isSame = (a, b) => a && b ? a.broker === b.broker && a.ip === b.ip && a.user === b.user && a.client === b.client : a === b;
