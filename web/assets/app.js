// The pages work without this script; it keeps them fresh.
"use strict";

// Blocks with data-refresh are fetched anew every two seconds while the page
// is in view and nobody works inside them.
function refresh(block) {
  setInterval(async () => {
    if (document.hidden || block.contains(document.activeElement)) return;
    try {
      const answer = await fetch(block.dataset.refresh);
      if (!answer.ok) throw new Error(answer.statusText);
      block.innerHTML = await answer.text(); // our own page, escaped by the server
      block.classList.remove("stale");
    } catch {
      block.classList.add("stale");
    }
  }, 2000);
}

function line(event) {
  const li = document.createElement("li");
  li.className = "e-" + event.kind.replace(/[^a-z_]/g, "");
  const time = document.createElement("time");
  time.textContent = new Date(event.at).toISOString().slice(11, 23);
  const kind = document.createElement("b");
  kind.textContent = event.kind;
  const text = document.createElement("span");
  text.textContent = (event.proxy ? event.proxy + " " : "") + (event.worker ? "worker " + event.worker + ": " : "") + event.text;
  li.append(time, " ", kind, " ", text);
  if (event.incident) {
    const a = document.createElement("a");
    a.href = "/incidents/" + encodeURIComponent(event.incident) + "/";
    a.textContent = "report";
    li.append(" ", a);
  }
  return li;
}

// The stream begins with the recent events, so the list is filled from it alone.
function feed(list) {
  const most = Number(list.dataset.feed);
  const source = new EventSource("/events");
  let fresh = true;
  source.onopen = () => { fresh = true; };
  source.onmessage = (m) => {
    if (fresh) list.replaceChildren();
    fresh = false;
    list.prepend(line(JSON.parse(m.data)));
    while (list.children.length > most) list.lastElementChild.remove();
  };
}

// The token is typed once per browser tab.
function token(input) {
  input.value = sessionStorage.getItem("token") || "";
  input.form.addEventListener("submit", () => sessionStorage.setItem("token", input.value));
}

document.querySelectorAll("[data-refresh]").forEach(refresh);
document.querySelectorAll("[data-feed]").forEach(feed);
document.querySelectorAll("[data-token]").forEach(token);
