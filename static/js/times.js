// "3 min ago" stays true while a page is open.

const UNITS = [["day", 86400], ["h", 3600], ["min", 60], ["s", 1]];

export function bindTimes() {
  setInterval(() => document.querySelectorAll("time[data-ago]").forEach(refresh), 10000);
}

function refresh(element) {
  const seconds = Math.max(0, (Date.now() - Date.parse(element.dateTime)) / 1000);
  const [name, size] = UNITS.find(([, length]) => seconds >= length) ?? UNITS[3];
  const count = Math.floor(seconds / size);
  element.textContent = `${count} ${name}${name === "day" && count !== 1 ? "s" : ""} ago`;
}
