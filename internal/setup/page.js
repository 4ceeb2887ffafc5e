"use strict";
// Reloads the page when the setup has something new to show, and says when the setup does not answer any more.
(() => {
  const version = document.querySelector("main").dataset.version;
  let failures = 0;
  const check = async () => {
    try {
      const answer = await fetch("version", { cache: "no-store", redirect: "error", signal: AbortSignal.timeout(5000) });
      const now = answer.ok ? await answer.text() : "";
      failures = /^\d+$/.test(now) ? 0 : failures + 1; // another program may have got the port
      if (failures === 0 && now !== version) return location.replace("./");
    } catch {
      failures++; // the setup has ended, or the connection is down
    }
    if (failures >= 5) {
      document.getElementById("ended").hidden = false;
      return;
    }
    setTimeout(check, 1000);
  };
  setTimeout(check, 500);
})();
