// Ctrl-K: a dialog that finds anything while somebody types, by keyboard alone if they like. The
// text field keeps the focus; which line is chosen is said by aria-activedescendant.

import { recentPages, rememberPage } from "./recent.js";

const WAIT_MS = 90; // after a key, so that a word is asked for and not each letter

export function bindPalette() {
  rememberPage();
  const dialog = document.getElementById("palette");
  if (!dialog) return;
  const palette = new Palette(dialog);
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    if (dialog.open) dialog.close();
    else palette.open();
  });
  for (const button of document.querySelectorAll("[data-palette-open]")) {
    button.addEventListener("click", () => palette.open());
  }
}

class Palette {
  constructor(dialog) {
    this.dialog = dialog;
    this.input = dialog.querySelector("input");
    this.list = dialog.querySelector("[role=listbox]");
    this.status = dialog.querySelector("[role=status]");
    this.chosen = -1;
    this.input.addEventListener("input", () => this.later());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.list.addEventListener("pointermove", (event) => this.point(event));
    this.list.addEventListener("click", (event) => this.click(event));
    // Beside the dialog is its backdrop.
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    dialog.addEventListener("close", () => this.closed());
  }

  open() {
    if (document.querySelector("dialog[open]")) return; // one at a time
    this.before = document.activeElement;
    this.dialog.showModal();
    this.input.value = "";
    this.input.focus();
    this.ask();
  }

  closed() {
    clearTimeout(this.timer);
    this.request?.abort();
    this.list.replaceChildren();
    if (this.before?.isConnected) this.before.focus();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), WAIT_MS);
  }

  // Answers to what was typed before are of no use any more.
  async ask() {
    this.request?.abort();
    this.request = new AbortController();
    const query = new URLSearchParams({ q: this.input.value, at: location.pathname + location.search });
    try {
      const answer = await fetch(`${this.dialog.dataset.palette}?${query}`, { signal: this.request.signal });
      if (!answer.ok) throw new Error(answer.status === 401 ? "login required" : `${answer.status}`);
      this.show(await answer.json());
    } catch (error) {
      if (error.name === "AbortError") return;
      this.list.replaceChildren();
      this.choose(-1);
      this.status.textContent = `Search failed: ${error.message}.`;
    }
  }

  show({ query, groups }) {
    let count = 0;
    const recent = query ? [] : recentPages();
    const parts = [{ title: "Recent", count: "", hits: recent }, ...groups].filter((group) => group.hits.length).map((group) => {
      const part = element("div", { role: "group", "aria-label": group.title });
      part.append(element("span", { "aria-hidden": "true" }, `${group.title} ${group.count}`));
      for (const hit of group.hits) part.append(option(hit, `palette-${count++}`));
      return part;
    });
    if (query) {
      const all = { text: `Search for “${query}”`, where: "everything, with counts", url: this.page(query) };
      const part = element("div", { role: "group", "aria-label": "Search" });
      part.append(option(all, `palette-${count++}`));
      parts.push(part);
    }
    this.list.replaceChildren(...parts);
    this.list.scrollTop = 0;
    this.choose(count ? 0 : -1);
    const cut = groups.filter((group) => group.is_cut).map((group) => group.title);
    const found = query ? `${count - 1} found` : "";
    this.status.textContent = cut.length ? `${found}; timed out: ${cut.join(", ")}` : found;
  }

  page(query) {
    return `${this.dialog.dataset.searchPage}?${new URLSearchParams({ q: query })}`;
  }

  get options() {
    return [...this.list.querySelectorAll("[role=option]")];
  }

  choose(at) {
    const options = this.options;
    options[this.chosen]?.setAttribute("aria-selected", "false");
    for (const each of this.list.querySelectorAll('[aria-selected="true"]')) each.setAttribute("aria-selected", "false");
    this.chosen = at;
    const chosen = options[at];
    if (!chosen) return this.input.removeAttribute("aria-activedescendant");
    chosen.setAttribute("aria-selected", "true");
    this.input.setAttribute("aria-activedescendant", chosen.id);
    chosen.scrollIntoView({ block: "nearest" });
  }

  key(event) {
    const last = this.options.length - 1;
    const steps = {
      ArrowDown: () => (this.chosen < last ? this.chosen + 1 : 0),
      ArrowUp: () => (this.chosen > 0 ? this.chosen - 1 : last),
      PageDown: () => Math.min(last, this.chosen + 8),
      PageUp: () => Math.max(0, this.chosen - 8),
    };
    if (event.key === "Enter") {
      event.preventDefault();
      this.go(this.options[this.chosen], event.ctrlKey || event.metaKey);
    } else if (event.key === "Tab") {
      event.preventDefault(); // there is nothing else to go to
    } else if (steps[event.key] && last >= 0) {
      event.preventDefault();
      this.choose(steps[event.key]());
    }
  }

  point(event) {
    const at = this.options.indexOf(event.target.closest("[role=option]"));
    if (at >= 0 && at !== this.chosen) this.choose(at);
  }

  click(event) {
    this.go(event.target.closest("[role=option]"), event.ctrlKey || event.metaKey);
  }

  go(chosen, apart) {
    if (!chosen) return;
    const { url } = chosen.dataset;
    this.before = null;
    this.dialog.close();
    if (apart) open(url, "_blank", "noopener");
    else location.assign(url);
  }
}

function option({ text, where, url }, id) {
  const found = element("div", { role: "option", id, "aria-selected": "false", title: where });
  found.dataset.url = url;
  found.append(element("b", {}, text), element("span", {}, where));
  return found;
}

function element(name, attributes, text = "") {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}
