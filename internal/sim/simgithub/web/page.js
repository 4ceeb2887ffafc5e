(() => {
  "use strict";
  let busy = false;
  let wait = 1000;

  // Choosing an account takes effect immediately; the button is for browsers without scripts.
  document.querySelectorAll("select[data-submit]").forEach((s) => {
    s.addEventListener("change", () => s.form.requestSubmit());
    s.form.querySelector("button").hidden = true;
  });

  const changed = (f) => {
    if (f.type === "checkbox" || f.type === "radio") return f.checked !== f.defaultChecked;
    if (f.tagName === "SELECT") {
      const first = [...f.options].findIndex((o) => o.defaultSelected);
      return f.selectedIndex !== Math.max(first, 0);
    }
    return f.value !== f.defaultValue;
  };

  // While the pointer moves, a click may follow, so the page must not shift.
  let moved = -Infinity;
  ["pointermove", "pointerdown"].forEach((kind) => addEventListener(kind, () => { moved = performance.now(); }, { passive: true }));
  const pointing = () => performance.now() - moved < 800;

  // The page is not replaced while a field was changed or has the focus.
  const dirty = (main) => {
    const at = document.activeElement;
    if (at && main.contains(at) && at.matches("input, textarea, select")) return true;
    if (main.querySelector("[data-dirty]")) return true;
    if (main.querySelector(".menu[open], .note[open]")) return true;
    return [...main.querySelectorAll("input:not([type=hidden]), textarea, select")].some(changed);
  };

  const opened = (main) => [...main.querySelectorAll("details")].map((d) => {
    const place = d.closest("[id]");
    const id = place ? place.id : "";
    const n = place ? [...place.querySelectorAll("details")].indexOf(d) : 0;
    return [id, n, d.open];
  });

  const reopen = (list) => list.forEach(([id, n, open]) => {
    const place = document.getElementById(id);
    const d = place && place.querySelectorAll("details")[n];
    if (d) d.open = open;
  });

  const replace = async (main) => {
    const res = await fetch(location.href, { credentials: "same-origin" });
    if (!res.ok) return;
    const html = (await res.text()).replace(/<style[^]*?<\/style>/, ""); // already present
    const page = new DOMParser().parseFromString(html, "text/html");
    const next = page.getElementById("main");
    if (!next || dirty(main) || pointing()) return;
    const open = opened(main);
    const focus = document.activeElement && main.contains(document.activeElement) ? document.activeElement.closest("[id]") : null;
    main.replaceWith(document.importNode(next, true));
    document.title = page.title;
    reopen(open);
    const again = focus && document.getElementById(focus.id);
    if (again) again.focus({ preventScroll: true });
  };

  const look = async () => {
    const main = document.getElementById("main");
    const stale = document.getElementById("stale");
    if (busy || document.hidden || !main || pointing()) return;
    busy = true;
    try {
      const res = await fetch("/_sim/version?path=" + encodeURIComponent(main.dataset.path), { credentials: "same-origin" });
      const version = await res.text();
      wait = 1000;
      if (res.ok && version !== main.dataset.version) {
        stale.hidden = !dirty(main);
        if (stale.hidden) await replace(main);
      } else {
        stale.hidden = true;
      }
    } catch {
      wait = Math.min(wait * 2, 30000); // the simulator has stopped, or is restarting
    } finally {
      busy = false;
    }
  };

  const loop = () => look().finally(() => setTimeout(loop, wait));
  setTimeout(loop, wait);
})();
