// Sending a model: how far it is, what is done with it, and what is wrong with it, on the page that
// somebody dropped it on. Without this the form is sent as any other.

export function bindImport() {
  document.querySelectorAll("form[data-import]").forEach(bindForm);
}

function bindForm(form) {
  const stages = form.querySelector("[data-stages]");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (form.dataset.busy) return;
    form.dataset.busy = "true";
    send(form, stages);
  });
}

function send(form, stages) {
  const request = new XMLHttpRequest();
  clear(form);
  stages.hidden = false;
  mark(stages, "send", "");
  request.upload.addEventListener("progress", ({ loaded, total }) => {
    mark(stages, "send", total ? `${Math.floor((100 * loaded) / total)} %` : "");
  });
  request.upload.addEventListener("load", () => mark(stages, "read", ""));
  request.addEventListener("load", () => answered(form, stages, request));
  request.addEventListener("error", () => failed(form, stages, "No connection to the server: nothing was imported."));
  request.open("POST", form.action);
  request.setRequestHeader("Accept", "application/json");
  request.send(new FormData(form));
}

function answered(form, stages, request) {
  let answer;
  try {
    answer = JSON.parse(request.responseText);
  } catch {
    return failed(form, stages, `Server error ${request.status}: nothing was imported.`);
  }
  if (answer.url) {
    mark(stages, "open", "");
    return location.assign(answer.url);
  }
  failed(form, stages, answer.errors?.map((each) => each.text).join(" ") ?? answer.text ?? answer.error);
}

function failed(form, stages, text) {
  delete form.dataset.busy;
  stages.hidden = true;
  const line = document.createElement("p");
  line.className = "field-error";
  line.setAttribute("role", "alert");
  line.textContent = text;
  form.querySelector("[data-drop]").append(line);
}

function clear(form) {
  for (const line of form.querySelectorAll(".field-error")) line.remove();
}

// Everything before the stage is done.
function mark(stages, name, text) {
  const all = [...stages.querySelectorAll("[data-stage]")];
  const at = all.findIndex((each) => each.dataset.stage === name);
  all.forEach((each, place) => {
    each.className = `status ${place < at ? "ok" : place === at ? "run" : "wait"}`;
    if (place === at) each.setAttribute("aria-current", "step");
    else each.removeAttribute("aria-current");
  });
  all[at].querySelector("output").textContent = text;
}
