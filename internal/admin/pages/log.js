"use strict";
// Follows the log of an active run. Without scripts the page must be reloaded manually.
(() => {
  const log = document.getElementById("log"), state = document.getElementById("state");
  if (!log || !log.dataset.events || !window.EventSource) return;
  const most = 2000; // maximum number of entries on the page
  const make = (tag, name, text) => {
    const e = document.createElement(tag);
    if (name) e.className = name;
    if (text) e.textContent = text;
    return e;
  };
  const entry = (it) => {
    const li = make("li", "item");
    if (/^[a-z]+$/.test(it.kind)) li.classList.add(it.kind);
    const stamp = make("span", "stamp");
    if (!it.at.startsWith("0001")) {
      const time = make("time", "", new Date(it.at).toISOString().slice(11, 19));
      time.dateTime = it.at;
      stamp.append(time);
    }
    li.append(stamp, make("span", "what", it.what));
    if (it.text) li.append(make("div", "text", it.text));
    if (it.more) {
      const more = make("a", "more", it.more + " more characters");
      more.href = log.dataset.path + "/at/" + it.from;
      li.append(more);
    }
    return li;
  };
  const say = (text, on) => { state.textContent = text; state.classList.toggle("on", on); };
  const bottom = () => { log.scrollTop = log.scrollHeight; };
  bottom();
  const source = new EventSource(log.dataset.events + "?from=" + log.dataset.from);
  source.onopen = () => say("Live: new entries appear as they come.", true);
  source.onerror = () => say(source.readyState === EventSource.CLOSED ? "The live log is not available. Reload the page." : "The connection was lost; trying again.", false);
  source.onmessage = (event) => {
    const follow = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
    log.append(...JSON.parse(event.data).map(entry));
    while (log.childElementCount > most) log.firstElementChild.remove();
    if (follow) bottom();
  };
  source.addEventListener("end", () => {
    source.close();
    say("The run has ended. Reload the page to see what came of it.", false);
  });
})();
