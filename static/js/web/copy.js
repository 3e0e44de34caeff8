// "Copy as TSV": the rows that match, as the server writes them, into the clipboard. Where a page
// may not write there (plain HTTP) the link is followed, and the browser saves the file.

export function bindCopies() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("[data-copy-tsv]"); // a table may be put in place of another
    if (!link || !navigator.clipboard?.write || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    copy(link);
  });
}

async function copy(link) {
  const said = link.parentElement.querySelector("[data-copied]");
  const text = fetch(link.href).then((answer) => {
    if (answer.redirected) throw new Error("log in first"); // what came is the login's page
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    return answer.text();
  });
  try {
    // The promise is handed over: what is copied must begin while the key or button is pressed.
    const blob = text.then((content) => new Blob([content], { type: "text/plain" }));
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
    const rows = (await text).trimEnd().split("\n").length - 1;
    said.textContent = `${rows} ${rows === 1 ? "row" : "rows"} copied`;
  } catch (error) {
    said.textContent = `Not copied: ${error.message}`;
  }
}
