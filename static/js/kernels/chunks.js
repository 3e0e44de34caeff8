// The chunks of a long listing: those that came with the page, and those that are fetched when
// they come near the view. An empty chunk is as high as its lines will be.

export const ROW = 18; // px, --code-row
const NEAR = "2000px";
const FAR = "20000px"; // from the first scrolling on: who drags the bar passes a chunk in 80 ms

export class Chunks {
  // places: the size of a chunk, and the URLs of the chunks.
  constructor(pane, places, learn) {
    Object.assign(this, { pane, places, learn });
    this.chunks = [...pane.querySelectorAll(".chunk")];
    this.loading = new Map();
    this.measure();
    for (const chunk of this.chunks) if (!chunk.dataset.later) learn(chunk);
    this.watch(NEAR);
    pane.addEventListener("scroll", () => this.watch(FAR), { once: true, passive: true });
  }

  watch(margin) {
    this.observer?.disconnect();
    const seen = (entries) => entries.filter((e) => e.isIntersecting).forEach((e) => this.load(e.target));
    this.observer = new IntersectionObserver(seen, { root: this.pane, rootMargin: margin });
    this.chunks.filter((chunk) => chunk.dataset.later).forEach((chunk) => this.observer.observe(chunk));
  }

  // How high what is not laid out, or not there yet, will be.
  measure(part = this.pane) {
    const key = this.pane.classList.contains("no-directives") ? "shown" : "lines";
    for (const rows of part.querySelectorAll("[data-lines]")) {
      const height = `${rows.dataset[key] * ROW}px`;
      if (rows.matches(".rows")) rows.style.containIntrinsicBlockSize = height;
      else rows.style.height = rows.dataset.later ? height : "";
    }
  }

  async ensure(number) {
    const chunk = this.chunks[Math.floor((number - 1) / this.places.chunk)];
    if (chunk?.dataset.later) await this.load(chunk);
  }

  load(chunk) {
    if (!this.loading.has(chunk)) this.loading.set(chunk, this.fetch(chunk));
    return this.loading.get(chunk);
  }

  async fetch(chunk) {
    this.observer.unobserve(chunk);
    const answer = await fetch(`${this.places.lines}${chunk.dataset.later}${this.places.query}`);
    if (!answer.ok) {
      chunk.textContent = `These lines could not be loaded (${answer.status}); reload the page.`;
      return;
    }
    chunk.innerHTML = await answer.text();
    delete chunk.dataset.later;
    chunk.style.height = "";
    this.measure(chunk);
    this.learn(chunk);
  }
}
