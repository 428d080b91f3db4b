"use strict";
// The page: sends a table to this server and shows the answer. Values of the table enter as text only.

(() => {
  const at = (id) => document.getElementById(id);
  const TOP = 20;
  let content = null;

  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  function problem(text) {
    at("problem").hidden = !text;
    at("problem").textContent = text;
  }

  async function ask(path, body) {
    const headers = {};
    if (at("token").value) headers.Authorization = `Bearer ${at("token").value}`;
    if (body !== undefined) headers["Content-Type"] = "text/csv";
    const name = at("model").value;
    const url = name ? `${path}${path.includes("?") ? "&" : "?"}model=${encodeURIComponent(name)}` : path;
    const answer = await fetch(url, { method: body === undefined ? "GET" : "POST", headers, body });
    if (answer.ok) return answer;
    if (answer.status === 401) at("token-label").hidden = false;
    const told = await answer.json().catch(() => ({}));
    throw new Error(told.detail || `The server answered with ${answer.status}.`);
  }

  /** Run something; while it runs, the buttons wait. What goes wrong is shown. */
  async function busy(work) {
    const buttons = [at("go"), at("report")];
    problem("");
    buttons.forEach((button) => { button.disabled = true; });
    try {
      await work();
    } catch (error) {
      problem(error.message === "Failed to fetch" ? "The server does not answer: is it still running?" : error.message);
    } finally {
      buttons.forEach((button) => { button.disabled = false; });
    }
  }

  function table() {
    const text = at("rows").value.trim();
    if (text) return `${text}\n`;
    if (content) return content;
    throw new Error("Drop a CSV file, or paste rows with the column names in the first line.");
  }

  async function begin() {
    const { models } = await (await ask("/v1/models")).json();
    const before = at("model").value;
    at("model").replaceChildren(...models.map((one) => make("option", { value: one.model }, one.model)));
    if (models.some((one) => one.model === before)) at("model").value = before;
    at("model-label").hidden = models.length < 2;
    await describe();
  }

  async function describe() {
    const model = await (await ask("/v1/model")).json();
    const used = model.columns.filter((column) => column.used);
    at("about").textContent = `${model.model}: fitted on ${model.training_rows.toLocaleString("en")} rows, ${used.length} columns.`;
    at("rows").placeholder = used.map((column) => column.name).join(",");
    at("columns").replaceChildren(
      ...model.columns.map((column) => make("tr", {}, make("td", {}, column.name), make("td", {}, column.used ? column.kind : "not used"), make("td", {}, column.note))),
    );
  }

  async function show() {
    const body = table();
    const explained = await (await ask(`/v1/explain?top=${TOP}`, body)).json();
    const checked = await (await ask("/v1/check", body)).json();
    const n = explained.n_rows.toLocaleString("en");
    at("found-title").textContent = explained.n_rows > explained.rows.length ? `The first ${explained.rows.length} of ${n} rows` : `${n} ${explained.n_rows === 1 ? "row" : "rows"}`;
    const changed = checked.verdict === "drift";
    at("drift").className = changed ? "changed" : "";
    const head = changed ? [make("p", {}, make("strong", {}, "Not like the training table"))] : [make("p", { class: "muted" }, "Still like the training table.")];
    at("drift").replaceChildren(...head, ...checked.reasons.map((reason) => make("p", {}, reason)));
    at("body").replaceChildren(
      ...explained.rows.map((row, i) =>
        make(
          "tr",
          row.score > explained.threshold ? { class: "above" } : {},
          make("td", { class: "number" }, `${i + 1}`),
          make("td", { class: "number" }, `${row.row}`),
          make("td", { class: "number score" }, (Math.floor(row.score * 1e4) / 1e4).toFixed(4)),
          make("td", { class: "why" }, ...(row.reasons.length ? row.reasons : [row.kind]).map((reason) => make("div", {}, reason))),
        ),
      ),
    );
    at("found").hidden = false;
    at("status").textContent = at("found-title").textContent;
    at("found").focus();
  }

  /** The report opens in a tab of its own; it is a page that asks nothing of any server. */
  async function report() {
    const tab = window.open("", "_blank");
    try {
      const answer = await ask("/v1/report", table());
      const url = URL.createObjectURL(await answer.blob());
      if (tab) tab.location = url;
      else window.location = url;
    } catch (error) {
      if (tab) tab.close();
      throw error;
    }
  }

  async function take(file) {
    content = await file.text();
    at("rows").value = "";
    at("name").textContent = file.name;
    await busy(show);
  }

  at("form").addEventListener("submit", (event) => {
    event.preventDefault();
    busy(show);
  });
  at("report").addEventListener("click", () => busy(report));
  at("file").addEventListener("change", () => {
    if (at("file").files.length) take(at("file").files[0]);
    at("file").value = "";
  });
  for (const kind of ["dragenter", "dragover"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      at("drop").classList.add("over");
    });
  }
  document.addEventListener("dragleave", () => at("drop").classList.remove("over"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    at("drop").classList.remove("over");
    if (event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
  });
  at("model").addEventListener("change", () => busy(describe));
  at("token").addEventListener("change", () => busy(begin));
  busy(begin);
})();
