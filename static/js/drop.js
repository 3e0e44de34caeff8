// A file dropped on the area is the file of the form.

export function bindDrop() {
  const area = document.querySelector("[data-drop]");
  const input = area.querySelector("input[type=file]");
  const name = area.querySelector("output");
  const show = () => { name.textContent = input.files[0]?.name ?? ""; };
  for (const type of ["dragover", "dragenter"]) {
    area.addEventListener(type, (event) => {
      event.preventDefault();
      area.classList.add("over");
    });
  }
  area.addEventListener("dragleave", () => area.classList.remove("over"));
  area.addEventListener("drop", (event) => {
    event.preventDefault();
    area.classList.remove("over");
    input.files = event.dataTransfer.files;
    show();
  });
  input.addEventListener("change", show);
  show();
}
