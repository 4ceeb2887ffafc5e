"use strict";
// Renews the board while somebody looks at it. Without scripts the page is reloaded by hand.
(() => {
  const every = 5000;
  const renew = async () => {
    if (document.visibilityState !== "visible") return;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
      if (answer.status === 401) { location.reload(); return; }
      if (!answer.ok) return;
      const text = (await answer.text()).replace(/<style[^]*?<\/style>/, ""); // it is here already, and would be refused
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
