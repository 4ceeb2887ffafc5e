"use strict";
// Updates the board while it is visible. Without scripts the page must be reloaded manually.
(() => {
  const every = 5000;
  const renew = async () => {
    if (document.visibilityState !== "visible") return;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
      if (answer.status === 401) { location.reload(); return; }
      if (!answer.ok) return;
      const text = (await answer.text()).replace(/<style[^]*?<\/style>/, ""); // already present, and would be blocked
      const fresh = new DOMParser().parseFromString(text, "text/html");
      for (const part of ["main", "footer"]) {
        const old = document.querySelector(part), now = fresh.querySelector(part);
        if (!old || !now || old.innerHTML === now.innerHTML) continue;
        const link = old.contains(document.activeElement) && document.activeElement.getAttribute("href");
        old.replaceChildren(...now.childNodes);
        if (link) old.querySelector(`a[href="${CSS.escape(link)}"]`)?.focus();
      }
    } catch { /* the next try may work */ }
  };
  setInterval(renew, every);
})();
