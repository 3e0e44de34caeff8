// Parts of pages that look for news by themselves ([data-live], with an id): every few seconds, and
// while somebody looks at them. Rows that are there change in their places; what would move them
// (new rows, another order) waits for a click on "3 new". Texts in [data-live-part] are replaced,
// unless somebody is in them. What did not change is not sent (ETag). [data-live-keep] are parameters
// of what is shown where the address leaves the choice to the server: news are of the same.

const EVERY_MS = 4000;

export function bindLive() {
  bindLogouts();
  bindTabs();
  for (const region of document.querySelectorAll("[data-live]")) new Live(region).later();
}

class Live {
  constructor(region) {
    this.id = region.id;
    this.note = note();
    this.before = new Map(); // a row's HTML as the server had it last
    this.failures = 0;
    this.every = Number(region.dataset.live) * 1000 || EVERY_MS;
    document.addEventListener("visibilitychange", () => document.hidden || this.look());
  }

  get region() {
    return document.getElementById(this.id);
  }

  later() {
    clearTimeout(this.timer);
    if (this.region && !this.isOver) this.timer = setTimeout(() => this.look(), this.every);
  }

  async look() {
    if (document.hidden) return this.later();
    try {
      const answer = await fetch(keptAddress(this.region), {
        headers: { "HX-Request": "true" },
        cache: "no-cache",
      });
      if (answer.status === 401) return loggedOut();
      if (!answer.ok) throw new Error(`${answer.status}`);
      if (this.failures > 1) this.note.say("");
      this.failures = 0;
      this.take(await answer.text());
    } catch {
      this.failures += 1;
      if (this.failures > 1) this.note.say("Not up to date: no connection to the server.");
    }
    this.later();
  }

  take(text) {
    const fresh = new DOMParser().parseFromString(text, "text/html").getElementById(this.id);
    const region = this.region;
    if (!fresh || !region) return;
    this.isOver = !("live" in fresh.dataset); // nothing more will come
    if (fresh.dataset.liveState !== region.dataset.liveState) return this.renew();
    for (const part of region.querySelectorAll("[data-live-part]")) {
      const news = fresh.querySelector(`#${part.id}`);
      if (news && !isHeld(part)) this.replace(part, news, part.id);
    }
    const tables = [...fresh.querySelectorAll("table.grid[id]")];
    const there = tables.map((table) => region.querySelector(`#${table.id}`));
    if (there.includes(null)) return this.renew(); // the first row of a list
    const changes = tables.map((table, at) => this.merge(there[at], table));
    const added = changes.reduce((sum, each) => sum + each.added, 0);
    const moved = changes.some((each) => each.moved);
    if (added || moved) this.note.offer(added ? `${added} new` : "Update the order", () => this.show(tables));
    else if (!this.failures) this.note.say("");
  }

  // A page that changed in kind (a graph that is prepared now) is shown anew, unless somebody types.
  renew() {
    const again = () => reload(this.region);
    if (isTyping()) this.note.offer("Reload", again);
    else again();
  }

  merge(table, fresh) {
    const rows = new Map([...fresh.tBodies[0].rows].map((row, at) => [keyOf(row, at), row]));
    const present = [...table.tBodies[0].rows].map((row, at) => [keyOf(row, at), row]);
    for (const [key, row] of present) {
      const news = rows.get(key);
      if (news) this.update(row, news, `${table.id} ${key}`);
    }
    const known = new Set(present.map(([key]) => key));
    const order = [...rows.keys()].filter((key) => known.has(key));
    const shown = present.map(([key]) => key).filter((key) => rows.has(key));
    return {
      added: [...rows.keys()].filter((key) => !known.has(key)).length,
      moved: order.join("\n") !== shown.join("\n"),
    };
  }

  update(row, news, key) {
    [...news.cells].forEach((cell, at) => {
      if (row.cells[at] && !isHeld(row.cells[at])) this.replace(row.cells[at], cell, `${key} ${at}`);
    });
  }

  // Scripts mark what is there (what is selected, where the focus may go): what the server sent
  // before is what news are told by, and the first time the text.
  replace(old, news, key) {
    const before = this.before.get(key);
    this.before.set(key, news.innerHTML);
    const same = before === undefined ? textOf(old) === textOf(news) : before === news.innerHTML;
    if (same) return;
    old.replaceChildren(...[...news.childNodes].map((node) => document.importNode(node, true)));
    for (const name of ["title", "class"]) {
      if (news.hasAttribute(name)) old.setAttribute(name, news.getAttribute(name));
    }
  }

  show(tables) {
    for (const fresh of tables) {
      const table = this.region.querySelector(`#${fresh.id}`);
      const rows = [...fresh.tBodies[0].rows].map((row) => document.importNode(row, true));
      table.tBodies[0].replaceChildren(...rows);
      document.querySelector(`[data-filter="${fresh.id}"]`)?.dispatchEvent(new Event("input"));
    }
    this.note.say("");
    document.dispatchEvent(new CustomEvent("rows-renewed"));
  }
}

// The page's address, with what must stay the same in it.
function keptAddress(region) {
  const query = new URLSearchParams(location.search);
  const kept = new URLSearchParams(region.dataset.liveKeep ?? "");
  if (![...kept].length) return location.pathname + location.search;
  for (const [name, value] of kept) query.set(name, value);
  return `${location.pathname}?${query}`;
}

function reload(region) {
  const address = keptAddress(region);
  if (address === location.pathname + location.search) location.reload();
  else location.replace(address + location.hash);
}

function keyOf(row, at) {
  return row.id || row.querySelector("a[href]")?.getAttribute("href") || `${at}`;
}

// What is read (progress bars have no text).
function textOf(element) {
  const bars = [...element.querySelectorAll("progress")].map((bar) => bar.getAttribute("value"));
  return [element.textContent.replace(/\s+/g, " ").trim(), ...bars].join(" ");
}

// Somebody is in it, or has marked a part of its text.
function isHeld(element) {
  const selection = getSelection();
  return element.contains(document.activeElement) || (!selection.isCollapsed && selection.containsNode(element, true));
}

function isTyping() {
  return document.activeElement?.matches("input, textarea, select") ?? false;
}

// One line over the page's corner: it moves nothing.
function note() {
  const place = document.createElement("p");
  place.className = "live-note";
  place.setAttribute("role", "status");
  document.body.append(place);
  return {
    say(text) {
      place.replaceChildren(...(text ? [text] : []));
    },
    offer(text, act) {
      if (place.textContent === text) return (place.firstChild.onclick = act);
      const button = document.createElement("button");
      button.type = "button";
      button.className = "primary";
      button.textContent = text;
      button.onclick = act;
      place.replaceChildren(button);
    },
  };
}

let said = false;

function loggedOut() {
  if (said) return;
  said = true;
  const back = location.pathname + location.search + location.hash;
  const link = document.createElement("a");
  link.href = `/login/?${new URLSearchParams({ next: back })}`;
  link.textContent = "Log in";
  const place = note();
  place.say("You are logged out; this page is no longer updated. ");
  document.querySelector(".live-note:last-of-type").append(link);
}

// The tab whose section was loaded is the current one.
function bindTabs() {
  document.addEventListener("htmx:afterOnLoad", ({ target }) => {
    if (!target.matches(".tabs a")) return;
    target.closest(".tabs").querySelector("[aria-current]")?.removeAttribute("aria-current");
    target.setAttribute("aria-current", "page");
  });
}

// Parts that htmx replaces are told the same way that nobody is logged in.
function bindLogouts() {
  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.xhr.status === 401) loggedOut();
  });
}
