// "3 min ago" stays true while a page is open.

const UNITS = [["day", 86400], ["h", 3600], ["min", 60], ["s", 1]];

export function bindTimes() {
  refreshAll(); // a kept page was written a while ago
  setInterval(refreshAll, 10000);
}

function refreshAll() {
  document.querySelectorAll("time[data-ago]").forEach(refresh);
}

function refresh(element) {
  const seconds = Math.max(0, (Date.now() - Date.parse(element.dateTime)) / 1000);
  const [name, size] = UNITS.find(([, length]) => seconds >= length) ?? UNITS[3];
  const count = Math.floor(seconds / size);
  element.textContent = `${count} ${name}${name === "day" && count !== 1 ? "s" : ""} ago`;
}
