// What the tests of every page ask of a page, as `checks`; axe-core is there beside it.

const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const short = (element) => element.outerHTML.slice(0, 140);

globalThis.checks = {
  // What axe finds, a line each. What Plotly draws is its own: the figures beside each chart say the
  // same in text. Links to lines of code are as high as the lines, which WCAG 2.5.8 excepts
  // ("inline": their size is constrained by the line's height).
  async violations() {
    const found = await axe.run({ exclude: [[".js-plotly-plot .plotly"]] }, {
      runOnly: { type: "tag", values: RULES }, resultTypes: ["violations"],
    });
    const isLine = ({ target }) => document.querySelector(target.at(-1)).closest(".codepane .l");
    return found.violations.flatMap(({ id, help, nodes }) => nodes
      .filter((node) => id !== "target-size" || !isLine(node))
      .map(({ target, failureSummary }) => `${id}, ${help}: ${target.join(" ")}: ${failureSummary}`));
  },

  // Stops of the Tab key that nobody looks for where they come: wholly above the one before and not
  // to its right. Those within what scrolls by itself are left out: where they lie changes.
  backwards() {
    const scrolls = ({ parentElement: parent }) => parent && parent !== document.body
      && (getComputedStyle(parent).overflow !== "visible" || scrolls(parent));
    const reached = "a[href], button, input, select, textarea, summary, [tabindex]";
    const stops = [...document.querySelectorAll(reached)].filter((e) => e.tabIndex >= 0 && !e.disabled
      && e.checkVisibility() && e.type !== "hidden" && !e.classList.contains("skip") && !scrolls(e));
    const wrong = stops.filter((e) => e.tabIndex > 0).map((e) => `has a tabindex: ${short(e)}`);
    for (let at = 1; at < stops.length; at += 1) {
      const [one, next] = [stops[at - 1], stops[at]].map((e) => e.getBoundingClientRect());
      if (next.bottom <= one.top && next.left < one.right) {
        wrong.push(`${short(stops[at - 1])} comes before ${short(stops[at])}`);
      }
    }
    return wrong;
  },

  // Where the focus is and is not seen: it has no outline, and no part of it is drawn with one.
  hidden() {
    const here = document.activeElement;
    if (here === document.body) return null;
    const box = here.getBoundingClientRect();
    const style = getComputedStyle(here.querySelector(":scope > .box") ?? here);
    const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
    const isSeen = box.width > 0 && box.height > 0 && (outlined || parseFloat(style.strokeWidth) >= 2);
    return isSeen ? "" : short(here);
  },

  // What reaches beyond the screen and does not lie in something that scrolls or cuts.
  wide() {
    const screen = document.documentElement.clientWidth;
    const inside = ({ parentElement: parent }) => parent
      && (getComputedStyle(parent).overflowX !== "visible" || inside(parent));
    return [...document.querySelectorAll("body *")]
      .filter((e) => e.getBoundingClientRect().right > screen + 1 && !inside(e)).slice(0, 3).map(short);
  },
};
