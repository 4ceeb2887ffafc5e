"use strict";
// Reloads the page when the setup has something new to show.
(() => {
  const version = document.querySelector("main").dataset.version;
  const check = async () => {
    try {
      const answer = await fetch("version", { cache: "no-store" });
      if (answer.ok && (await answer.text()) !== version) return location.replace("./");
    } catch { /* the setup has ended, or the connection is down: the next attempt shows */ }
    setTimeout(check, 1000);
  };
  setTimeout(check, 500);
})();
