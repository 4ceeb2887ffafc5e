// Checks for every page. Each function returns faults as sentences.
const controls = "a[href], button, input:not([type=hidden]), select, textarea, summary";
const short = (e) => (e.outerHTML.split("\n")[0] || "").slice(0, 160);
const freeze = () => { window.thawed = window.fetch; window.fetch = () => new Promise(() => {}); return true; }; // the page does not update while it is checked
const unfold = () => { document.querySelectorAll("details").forEach((d) => { d.open = true; }); return true; };
const scroller = (e) => {
  for (let p = e.parentElement; p && p !== document.body; p = p.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(p).overflowX) && p.scrollWidth > p.clientWidth) return p;
  }
  return null;
};

const narrowFaults = (want) => {
  const out = [], wide = document.documentElement.clientWidth;
  if (innerWidth !== want || document.scrollingElement.scrollWidth > want) {
    const big = [...document.body.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > want + 1 && shown(e) && !scroller(e));
    out.push("it is " + document.scrollingElement.scrollWidth + " px wide; widest: " + (big.length ? short(big.at(-1)) : "unknown"));
  }
  for (const e of document.querySelectorAll(controls)) {
    if (!shown(e) || e.disabled || e.matches(".skip")) continue;
    e.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
    const r = e.getClientRects()[0];
    if (!scroller(e) && (r.left < -1 || r.right > wide + 1)) { out.push("it leaves the screen: " + short(e)); continue; }
    const x = Math.min(Math.max(r.left + r.width / 2, 0), wide - 1), y = r.top + r.height / 2;
    const at = document.elementFromPoint(x, y);
    if (!at || !(e.contains(at) || at.contains(e))) out.push("something lies over it: " + short(e) + ": " + (at ? short(at) : "nothing"));
  }
  return out;
};

const axeFaults = async (rules) => {
  const options = rules ? { runOnly: rules } : { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] };
  const found = await axe.run(document, { ...options, resultTypes: ["violations"] });
  return found.violations.map((v) => v.impact + ": " + v.id + ", " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + " (" + n.any.concat(n.all).map((c) => c.message).join("; ").slice(0, 240) + ")").join(" | "));
};

// The walk with the Tab key: each stop is recorded when it gets the focus.
const stops = () => [...document.querySelectorAll(controls + ", [tabindex='0']")].filter((e) => shown(e) && !e.disabled && e.tabIndex >= 0);
const walk = () => {
  if (document.activeElement) document.activeElement.blur();
  getSelection().removeAllRanges();
  scrollTo(0, 0);
  window.walked = { stops: stops(), seen: new Set(), faults: [] };
  document.addEventListener("focusin", (event) => {
    const e = event.target, style = getComputedStyle(e), r = e.getBoundingClientRect();
    walked.seen.add(e);
    if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 1) walked.faults.push("the focus is not to be seen: " + short(e));
    if (r.bottom < 1 || r.right < 1 || r.top > innerHeight - 1 || r.left > innerWidth - 1) walked.faults.push("it has the focus off the screen: " + short(e));
  });
  return walked.stops.length;
};
const walkFaults = () => (document.activeElement && document.activeElement.blur(), scrollTo(0, 0), walked.faults).concat(walked.stops.filter((e) => !walked.seen.has(e)).map((e) => "the Tab key does not reach it: " + short(e)));
