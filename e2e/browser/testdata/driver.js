// Functions of the tests in a page: they locate elements by the kind and name that people see.
const flat = (text) => (text || "").replace(/\s+/g, " ").trim();
const kinds = {
  button: "button, [role=button], [role=checkbox]",
  link: "a[href]",
  field: "input:not([type=hidden]), textarea, select",
  summary: "summary",
};
const named = (e) => flat(e.getAttribute("aria-label") || (e.labels && e.labels.length ? e.labels[0].textContent : "") || e.textContent || e.placeholder);
const shown = (e) => e.checkVisibility({ visibilityProperty: true }) && e.getClientRects().length > 0 && e.getClientRects()[0].width > 1;
const holders = (s) => {
  if (!s.in) return [document];
  const all = [...document.querySelectorAll(s.in)].filter((h) => !s.has || flat(h.textContent).includes(s.has));
  return all.slice(-1);
};
const finds = (s) => holders(s).flatMap((h) => [...h.querySelectorAll(kinds[s.kind])]).filter((e) => shown(e) && named(e).startsWith(s.name));
const the = (s) => {
  const all = finds(s);
  const same = all.filter((e) => named(e) === s.name);
  const list = same.length ? same : all;
  return s.last ? list.at(-1) : list.length === 1 ? list[0] : null;
};
const spot = async (s, scroll) => {
  const e = the(s);
  if (!e) return { X: 0, Y: 0, Why: finds(s).length + " of them" };
  if (e.disabled) return { X: 0, Y: 0, Why: "it is disabled" };
  if (scroll) e.scrollIntoView({ block: "center", behavior: "instant" });
  const r = e.getClientRects()[0];
  const X = Math.round(r.left + r.width / 2), Y = Math.round(r.top + r.height / 2);
  const at = document.elementFromPoint(X, Y);
  if (!at || !(e.contains(at) || at.contains(e))) return { X, Y, Why: "something lies over it: " + (at ? at.outerHTML.slice(0, 200) : "nothing") };
  return { X, Y, Why: "" };
};
const focus = (s) => {
  const e = the(s);
  if (!e) return false;
  e.focus();
  return document.activeElement === e;
};
