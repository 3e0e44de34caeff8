// Importing: the server says what a chosen file is from its first and last bytes, before the file is
// sent. The page then asks for what this kind of file needs, and shows how far the import is.
// Without this script the form is sent as any other.

const SAMPLE_BYTES = 64 << 10;

export function bindImport() {
  document.querySelectorAll("form[data-import]").forEach((form) => new Import(form));
}

class Import {
  constructor(form) {
    this.form = form;
    this.stages = form.querySelector("[data-stages]");
    this.answer = form.querySelector("[data-recognized]");
    this.button = form.querySelector("button[type=submit]");
    this.input = form.querySelector("[data-drop] input[type=file]");
    this.input.addEventListener("change", () => this.recognize());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!this.busy) this.send();
    });
    this.show(null);
    if (this.input.files.length) this.recognize(); // the browser kept it
  }

  async recognize() {
    this.clear();
    this.show(null);
    const [file] = this.input.files;
    if (!file) return;
    if (file.size > Number(this.form.dataset.limit)) {
      const limit = this.form.dataset.limitText;
      return this.say(`${file.name} is larger than ${limit}, the limit.`);
    }
    try {
      const recognized = await this.ask(file);
      if (this.input.files[0] === file) this.show(recognized);
    } catch (error) {
      this.say(error.message);
    }
  }

  async ask(file) {
    const data = new FormData();
    data.append("csrfmiddlewaretoken", this.form.elements.csrfmiddlewaretoken.value);
    data.append("name", file.name);
    data.append("size", file.size);
    try {
      data.append("head", new Blob([await file.slice(0, SAMPLE_BYTES).arrayBuffer()]), "head");
      data.append("tail", new Blob([await file.slice(-SAMPLE_BYTES).arrayBuffer()]), "tail");
    } catch {
      throw new Error(`${file.name} cannot be read. Of a folder, choose one file.`);
    }
    const answer = await fetch(this.form.dataset.import, {
      method: "POST",
      body: data,
      headers: { Accept: "application/json" },
    });
    if (!answer.ok) throw new Error(`The file was not recognized: server error ${answer.status}.`);
    return answer.json();
  }

  // What the file is, what to do with it, and the fields of its kind; null before one is chosen.
  show(recognized) {
    this.answer.hidden = !recognized;
    for (const part of this.form.querySelectorAll("[data-use]")) {
      part.hidden = part.disabled = part.dataset.use !== recognized?.use;
    }
    this.button.hidden = !recognized?.use;
    if (!recognized) return;
    const { title, advice, code } = recognized;
    this.answer.querySelector("[data-title]").textContent = title;
    this.answer.querySelector("[data-advice]").textContent = advice;
    const lines = this.answer.querySelector("[data-code]");
    lines.hidden = !code;
    lines.textContent = code;
  }

  send() {
    const request = new XMLHttpRequest();
    this.busy = true;
    this.clear();
    this.stages.hidden = false;
    this.mark("send", "");
    request.upload.addEventListener("progress", ({ loaded, total }) => {
      this.mark("send", total ? `${Math.floor((100 * loaded) / total)} %` : "");
    });
    request.upload.addEventListener("load", () => this.mark("read", ""));
    request.addEventListener("load", () => this.answered(request));
    request.addEventListener("error", () => this.failed("No connection to the server: nothing was imported."));
    request.open("POST", this.form.action);
    request.setRequestHeader("Accept", "application/json");
    request.send(new FormData(this.form));
  }

  answered(request) {
    let answer;
    try {
      answer = JSON.parse(request.responseText);
    } catch {
      return this.failed(`Server error ${request.status}: nothing was imported.`);
    }
    if (answer.url) {
      this.mark("open", "");
      return location.assign(answer.url);
    }
    this.failed(answer.errors?.map((each) => each.text).join(" ") ?? answer.text ?? answer.error);
  }

  failed(text) {
    this.busy = false;
    this.stages.hidden = true;
    this.say(text);
  }

  say(text) {
    const line = document.createElement("p");
    line.className = "field-error";
    line.setAttribute("role", "alert");
    line.textContent = text;
    this.form.querySelector("[data-drop]").append(line);
  }

  clear() {
    for (const line of this.form.querySelectorAll(".field-error")) line.remove();
  }

  // Everything before the stage is done.
  mark(name, text) {
    const all = [...this.stages.querySelectorAll("[data-stage]")];
    const at = all.findIndex((each) => each.dataset.stage === name);
    all.forEach((each, place) => {
      each.className = `status ${place < at ? "ok" : place === at ? "run" : "wait"}`;
      if (place === at) each.setAttribute("aria-current", "step");
      else each.removeAttribute("aria-current");
    });
    all[at].querySelector("output").textContent = text;
  }
}
