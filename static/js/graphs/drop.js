// Files dropped on an area are those of its form: each goes to the input that takes its kind.

export function bindDrop() {
  document.querySelectorAll("[data-drop]").forEach(bindArea);
}

function bindArea(area) {
  const inputs = [...area.querySelectorAll("input[type=file]")];
  const names = area.querySelector("output");
  const show = () => {
    names.textContent = inputs.flatMap((input) => [...input.files]).map((file) => file.name).join(", ");
  };
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
    for (const file of event.dataTransfer.files) {
      const held = new DataTransfer();
      held.items.add(file);
      const input = inputs.find((each) => takes(each, file)) ?? inputs[0];
      input.files = held.files;
      input.dispatchEvent(new Event("change", { bubbles: true }));
    }
  });
  for (const input of inputs) input.addEventListener("change", show);
  show();
}

function takes(input, file) {
  return input.accept.split(",").some((ending) => ending && file.name.endsWith(ending.trim()));
}
