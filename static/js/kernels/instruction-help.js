// What an instruction does and costs, beside it: where the pointer rests on its name, or the caret
// on its line. The text comes from the server once for each name.

const REST_MS = 250;
const known = new Map(); // address → promise of what is said there

export function bindHelp(listing) {
  if (!listing?.dataset.help) return { ask: () => {} };
  return new Help(listing);
}

class Help {
  constructor(listing) {
    this.listing = listing;
    this.box = document.createElement("div");
    this.box.id = "instruction-help";
    this.box.className = "instruction-help";
    this.box.setAttribute("role", "tooltip");
    this.box.setAttribute("popover", "manual");
    document.body.append(this.box);
    listing.addEventListener("mouseover", (event) => {
      const name = event.target.closest(".t > [class^='i-']");
      if (name) this.after(() => this.show(name));
      else this.after(() => this.hide());
    });
    listing.addEventListener("mouseleave", () => this.after(() => this.hide()));
    listing.addEventListener("scroll", () => this.hide(), { passive: true });
    listing.addEventListener("blur", () => this.after(() => this.hide()));
    this.box.addEventListener("mouseenter", () => clearTimeout(this.timer)); // it may be read and selected
    this.box.addEventListener("mouseleave", () => this.after(() => this.hide()));
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.hide());
  }

  // The caret has come to a line.
  ask(line) {
    const name = line.querySelector(".t > [class^='i-']");
    this.after(() => (name ? this.show(name) : this.hide()));
  }

  after(act) {
    clearTimeout(this.timer);
    this.timer = setTimeout(act, REST_MS);
  }

  hide() {
    clearTimeout(this.timer);
    if (this.box.matches(":popover-open")) this.box.hidePopover();
    this.listing.removeAttribute("aria-describedby");
  }

  async show(name) {
    const address = `${this.listing.dataset.help}${encodeURIComponent(name.textContent)}`;
    this.wanted = address;
    if (!known.has(address)) known.set(address, answer(`${address}.json`));
    let found;
    try {
      found = await known.get(address);
    } catch {
      known.delete(address); // the next time it is asked for again
      return;
    }
    if (this.wanted !== address || !name.isConnected) return;
    this.box.replaceChildren(...parts(found, address));
    this.box.showPopover();
    this.place(name.getBoundingClientRect());
    this.listing.setAttribute("aria-describedby", this.box.id);
  }

  // Below the line, above it where there is no room.
  place(at) {
    const { width, height } = this.box.getBoundingClientRect();
    const below = at.bottom + 4 + height <= innerHeight;
    this.box.style.left = `${Math.max(4, Math.min(at.left, innerWidth - width - 8))}px`;
    this.box.style.top = `${below ? at.bottom + 4 : Math.max(4, at.top - height - 4)}px`;
  }
}

async function answer(address) {
  const got = await fetch(address);
  if (!got.ok) throw new Error(`the server answered ${got.status}`);
  return got.json();
}

function parts(found, address) {
  const title = element("p", "", [element("strong", found.name), ` ${found.title}`]);
  const facts = element("dl", "", found.facts.flatMap((fact) => [element("dt", fact.name), element("dd", fact.value, [element("span", fact.source)])]));
  const more = element("a", "Instruction page");
  more.href = address;
  return [title, element("p", found.text), ...(found.facts.length ? [facts] : []), ...(found.note ? [element("p", found.note)] : []), more];
}

function element(tag, text, children = []) {
  const made = document.createElement(tag);
  made.append(text, ...children);
  return made;
}
