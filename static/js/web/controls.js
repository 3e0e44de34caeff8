// Forms that choose what a page shows say what it shows. After Back a browser fills in what was
// chosen there last, and then went elsewhere. Forms that pick rows for something keep what is picked.

const CHOOSING = "form[method=get]:not([data-picks])";

export function bindControls() {
  addEventListener("pageshow", ({ persisted }) => {
    const [arrival] = performance.getEntriesByType("navigation");
    if (!persisted && arrival?.type === "navigate") return; // typed in meanwhile, not filled in
    document.querySelectorAll(CHOOSING).forEach((form) => form.reset());
  });
}
