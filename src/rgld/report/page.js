// The page: reads its data, draws the charts, and keeps table, charts and detail at the same chosen row.

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const number = (value) => value.toLocaleString("en");
  const rows = data.rows;
  const FEW = 8; // items of a list before the button that shows the rest
  let chosen = -1;
  let column = -1;
  // Cut, not rounded: no score is 1.
  const score = (value) => (Math.floor(value * 1e5) / 1e5).toFixed(5);
  rows.forEach((row) => {
    row.title = `${data.row_name} ${row.id}`;
    row.strongest = row.columns.length ? data.names[row.columns[0].column] : "";
    row.words = [row.id, row.strongest, row.kind, ...row.reasons].join("\n").toLowerCase();
  });

  document.title = `Anomalies in ${data.source}`;
  at("source").textContent = data.source;
  at("made").textContent = `Made by RGLD ${data.version}. This page holds values of the table: treat it as you treat the table.`;
  theme();
  drift();
  summary();
  const marks = charts();
  data.groups.forEach((group, g) => group.rows.forEach((i) => { rows[i].group = g; }));
  const lines = table();
  findings();
  choose(0, false);
  relations();
  columns();
  reproduce();

  function theme() {
    const root = document.documentElement;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const show = (name) => {
      root.dataset.theme = name;
      at("theme").textContent = name === "dark" ? "Light colours" : "Dark colours";
    };
    show(dark.matches ? "dark" : "light");
    dark.addEventListener("change", () => show(dark.matches ? "dark" : "light"));
    at("theme").addEventListener("click", () => show(root.dataset.theme === "dark" ? "light" : "dark"));
  }

  /** What has changed since the training table, if the table was checked. */
  function drift() {
    if (!data.drift) return;
    at("drift").hidden = false;
    at("drift-title").textContent = data.drift.title;
    at("drift-words").append(...data.drift.sentences.map((sentence) => make("p", {}, sentence)));
    at("drift-legend").hidden = !data.drift.columns.length;
    at("drift-charts").append(
      ...data.drift.columns.map((one) => make("figure", {}, make("figcaption", {}, make("h4", {}, one.name)), driftChart(one))),
    );
  }

  function summary() {
    at("sentences").append(...data.summary.map((sentence) => make("p", {}, sentence)));
    at("facts").append(
      ...data.facts.map((fact) =>
        make("div", {}, make("dt", {}, fact.label), make("dd", { class: "figure" }, fact.value), make("dd", { class: "qualified" }, fact.note)),
      ),
    );
  }

  function figure(id, title, picture, note) {
    at(id).append(picture, make("figcaption", {}, make("h2", {}, title), make("p", { class: "muted" }, note)));
  }

  function charts() {
    const pick = (i) => choose(i, true);
    const about = "The rows of the table below are marked; the table gives their figures.";
    const { scatter, map } = data;
    const scattered = pointChart(scatter, rows, `Scatter plot of rows: ${scatter.x.label} against ${scatter.y.label}. ${about}`, pick);
    const mapped = pointChart(map, rows, `Map of rows in two dimensions. ${about}`, pick);
    figure("score-chart", "How the scores are distributed", scoreChart(data.scores), data.scores.note);
    figure("scatter-chart", scatter.title, scattered.picture, scatter.note);
    figure("map-chart", "Map of the rows", mapped.picture, map.note);
    at("drawn").textContent = data.drawn;
    return [scattered.mark, mapped.mark];
  }

  /** The button that shows the items of a list beyond the first few. */
  function showMore(items, more, what) {
    if (items.length <= FEW) return;
    more.hidden = false;
    more.textContent = `Show all ${number(items.length)} ${what}`;
    more.addEventListener("click", () => { items.forEach((item) => { item.hidden = false; }); more.hidden = true; });
  }

  /** What was found: rows that share their reasons are one finding. */
  function findings() {
    const { groups } = data;
    const n = groups.reduce((sum, group) => sum + group.rows.length, 0);
    const which = data.n_flagged ? (n < data.n_flagged ? `the ${number(n)} highest rows` : n === 1 ? "the row above the threshold" : `the ${number(n)} rows above the threshold`) : `the ${number(n)} highest rows`;
    at("findings-note").textContent =
      groups.length < n ? `Rows that stand out for the same reasons are one finding: ${which} make ${number(groups.length)} ${groups.length === 1 ? "finding" : "findings"}.` : `Of ${which}, no two stand out for the same reasons.`;
    const items = groups.map((group, g) => {
      const size = group.rows.length;
      const some = group.rows.slice(0, 3).map((i) => {
        const button = make("button", { type: "button", class: "link", title: `Choose ${rows[i].title}` }, make("bdi", {}, rows[i].id));
        button.addEventListener("click", () => { choose(i, true); at("rows").scrollIntoView(); });
        return button;
      });
      const which = make("span", { class: "which" }, size > 3 ? "strongest: " : `${data.row_name} `, ...some.flatMap((button, k) => [make("span", { class: "item" }, button, k < some.length - 1 ? "," : ""), " "]));
      if (size > 3) {
        const all = make("button", { type: "button", class: "link" }, `show all ${number(size)}`);
        all.addEventListener("click", () => show(g));
        which.append(" ", make("span", { class: "whole no-print" }, all));
      }
      return make(
        "li",
        { hidden: g < FEW ? null : "" },
        make("span", { class: "size" }, make("b", {}, number(size)), size === 1 ? " row" : " rows"),
        make("span", { class: "what" }, group.reasons.join("; ") || "nothing in particular"),
        which,
      );
    });
    at("findings").append(...items);
    showMore(items, at("more-findings"), "findings");
    function show(g) {
      at("finding").value = String(g);
      at("finding").dispatchEvent(new Event("input"));
      choose(groups[g].rows[0], false);
      at("rows").scrollIntoView();
    }
  }

  /** The table of rows: heads that sort, filters, and one row of many in the order of the Tab key. */
  function table() {
    const heads = [
      { label: "Rank", key: (row) => row.rank, kind: "number" },
      { label: data.counted ? "Row" : data.row_name, key: (row) => row.id, kind: "id" },
      { label: "Score", key: (row) => row.score, kind: "number", high: true },
      ...(data.has_p_values ? [{ label: "p-value", key: (row) => row.p, kind: "number" }] : []),
      { label: "Strongest", key: (row) => row.strongest, kind: "tags" },
      { label: "Why", kind: "reasons" },
    ];
    let sorted = { head: heads[0], down: false };
    heads.forEach((head) => {
      head.cell = make("th", { scope: "col", class: head.kind });
      if (head.key) {
        const button = make("button", { type: "button", title: `Sort by ${head.label}` }, make("span", {}, head.label));
        button.addEventListener("click", () => {
          sorted = { head, down: sorted.head === head ? !sorted.down : Boolean(head.high) };
          order();
        });
        head.cell.append(button);
      } else {
        head.cell.append(head.label);
      }
      at("heads").append(head.cell);
    });

    const body = at("body");
    const lines = rows.map((row, i) => {
      const flag = make("span", { class: row.flagged ? "flag on" : "flag", title: row.flagged ? "above the threshold" : "below the threshold" });
      const line = make(
        "tr",
        { tabindex: -1, "aria-selected": "false" },
        make("td", { class: "number" }, flag, number(row.rank)),
        make("td", { class: "id" }, row.id),
        make("td", { class: "number" }, score(row.score)),
        ...(data.has_p_values ? [make("td", { class: "number" }, String(row.p))] : []),
        make("td", {}, make("span", { class: "tag", title: row.strongest }, row.strongest)),
        make("td", { class: "reasons" }, row.reasons.join("; ") || "nothing in particular"),
      );
      line.addEventListener("click", () => choose(i, false));
      return line;
    });

    const matches = (row) =>
      row.words.includes(at("find").value.trim().toLowerCase()) &&
      (at("finding").value === "" || String(row.group) === at("finding").value) &&
      (at("strongest").value === "" || String(row.columns[0]?.column) === at("strongest").value) &&
      (!at("flagged").checked || row.flagged);
    const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));

    function order() {
      const { head, down } = sorted;
      heads.forEach((other) => {
        if (other.key) other.cell.setAttribute("aria-sort", other === head ? (down ? "descending" : "ascending") : "none");
      });
      const places = rows.map((_, i) => i);
      places.sort((i, j) => (down ? -1 : 1) * compare(head.key(rows[i]), head.key(rows[j])) || i - j);
      const shown = places.filter((i) => matches(rows[i]));
      const hidden = places.filter((i) => !matches(rows[i]));
      shown.forEach((i) => { lines[i].hidden = false; });
      hidden.forEach((i) => { lines[i].hidden = true; });
      body.replaceChildren(...shown.map((i) => lines[i]), ...hidden.map((i) => lines[i]));
      at("nothing").hidden = shown.length > 0;
      at("count").textContent = shown.length === rows.length ? whole() : `${number(shown.length)} of ${number(rows.length)} rows shown.`;
      reachable();
    }

    function whole() {
      const scope = rows.length < data.n_rows ? `The ${number(rows.length)} rows with the highest scores, of ${number(data.n_rows)}` : `All ${number(rows.length)} rows`;
      const below = rows.filter((row) => !row.flagged).length;
      const rest = below && data.n_flagged ? `; ${number(below)} of them are below the threshold` : "";
      return `${scope}${rest}.${data.counted ? " Rows are counted from 0." : data.row_name === "line" ? " Rows are named by their line in the file." : ""}`;
    }

    function reachable() {
      const first = lines[chosen] && !lines[chosen].hidden ? lines[chosen] : body.querySelector("tr:not([hidden])");
      lines.forEach((line) => { line.tabIndex = line === first ? 0 : -1; });
    }

    body.addEventListener("keydown", (event) => {
      const line = event.target.closest("tr");
      const shown = [...body.querySelectorAll("tr:not([hidden])")];
      const place = shown.indexOf(line);
      const next = { ArrowDown: place + 1, ArrowUp: place - 1, PageDown: place + 10, PageUp: place - 10, Home: 0, End: shown.length - 1, Enter: place, " ": place }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      const target = shown[Math.min(Math.max(next, 0), shown.length - 1)];
      choose(lines.indexOf(target), false);
      target.focus();
    });
    ["find", "finding", "strongest", "flagged"].forEach((id) => at(id).addEventListener("input", order));
    at("reset").addEventListener("click", () => {
      at("find").value = "";
      at("finding").value = "";
      at("strongest").value = "";
      at("flagged").checked = false;
      order();
      at("find").focus();
    });

    data.groups.forEach((group, g) => {
      if (group.rows.length > 1) at("finding").append(make("option", { value: g }, `${group.rows.length} rows: ${group.reasons[0] || "nothing in particular"}`));
    });
    at("finding").parentElement.hidden = at("finding").options.length < 2;
    const used = new Map();
    rows.forEach((row) => {
      const first = row.columns[0]?.column;
      if (first !== undefined) used.set(first, (used.get(first) || 0) + 1);
    });
    [...used].sort((a, b) => b[1] - a[1]).forEach(([j, n]) => at("strongest").append(make("option", { value: j }, `${data.names[j]} (${n})`)));
    at("flagged-label").hidden = rows.every((row) => row.flagged) || !data.n_flagged;
    at("rows-title").textContent = "The most unusual rows";
    order();
    lines.reachable = reachable;
    return lines;
  }

  /** The relations between columns; each row shown that breaks one can be chosen from it. */
  function relations() {
    if (!data.relations.length) return;
    at("relations-card").hidden = false;
    const more = data.n_relations > data.relations.length ? ` The ${number(data.relations.length)} that rows break, or that are strongest, are listed.` : "";
    const breaking = data.n_breaking === 1 ? "1 row breaks one" : `${number(data.n_breaking)} rows break one`;
    at("relations-note").textContent = `${number(data.n_relations)} relations between columns were learned; ${breaking}.${more}`;
    const items = data.relations.map((relation, place) => {
      const line = make("li", { hidden: place < FEW ? null : "" }, make("bdi", {}, relation.words));
      if (relation.n_rows) line.append(make("span", { class: "muted" }, ` broken by ${number(relation.n_rows)}: `));
      relation.rows.slice(0, 20).forEach((i, k) => {
        const button = make("button", { type: "button", class: "link", title: `Choose ${rows[i].title}` }, make("bdi", {}, rows[i].id));
        button.addEventListener("click", () => { choose(i, true); at("rows").scrollIntoView(); });
        const comma = k < Math.min(relation.rows.length, 20) - 1 ? "," : "";
        line.append(make("span", { class: "item" }, button, comma), " ");
      });
      return line;
    });
    at("relations").append(...items);
    showMore(items, at("more-relations"), "relations");
  }

  /** Choose a row everywhere; `move` brings its line of the table into sight. */
  function choose(i, move) {
    if (chosen >= 0) lines[chosen].setAttribute("aria-selected", "false");
    chosen = i;
    lines[i].setAttribute("aria-selected", "true");
    lines.reachable();
    marks.forEach((mark) => mark(i));
    detail(rows[i]);
    if (move && !lines[i].hidden) {
      const box = at("scroll");
      box.scrollTop = lines[i].offsetTop - box.clientHeight / 3;
    }
    at("chosen").textContent = `${rows[i].title}: ${rows[i].reasons.join("; ")}`;
  }

  function detail(row) {
    const known = [`rank ${number(row.rank)} of ${number(data.n_rows)}`, `score ${score(row.score)}`];
    if (row.p !== undefined) known.push(`p-value ${row.p}`);
    known.push(row.flagged ? "above the threshold" : "below the threshold");
    const parts = make("div", { class: "parts", role: "group", "aria-label": "Columns by their part in the evidence" });
    const chart = make("figure");
    const most = Math.max(...row.columns.map((cell) => cell.share), 1e-9);
    const buttons = row.columns.map((cell) => {
      const name = data.names[cell.column];
      const bar = make("i");
      bar.style.setProperty("--part", `${(100 * cell.share) / most}%`);
      const button = make(
        "button",
        { type: "button", "aria-pressed": "false", title: `${name}: ${cell.text || "missing"}` },
        make("span", { class: "name" }, name),
        make("span", { class: "track" }, bar),
        make("span", { class: "value" }, cell.text || "missing"),
        make("span", { class: "number" }, percent(cell.share)),
      );
      button.addEventListener("click", () => show(cell));
      return button;
    });
    const show = (cell) => {
      column = cell.column;
      buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(row.columns[i] === cell)));
      distribution(chart, cell);
    };
    parts.append(...buttons);
    const rest = 1 - row.columns.reduce((sum, cell) => sum + cell.share, 0);
    const others = data.n_columns - row.columns.length;
    at("detail").replaceChildren(
      make("h3", {}, make("bdi", {}, row.title)),
      make("p", { class: "line" }, known.join(" · ")),
      make("p", {}, row.kind.charAt(0).toUpperCase() + row.kind.slice(1) + "."),
      make("ol", {}, ...row.reasons.map((reason) => make("li", {}, reason))),
      make("h4", {}, "Part of each column in the evidence"),
      parts,
      make("p", { class: "muted" }, others > 0 && rest > 0.0005 ? `The other ${number(others)} columns together: ${percent(rest)}.` : ""),
      chart,
    );
    if (row.columns.length) show(row.columns.find((cell) => cell.column === column && cell.share >= 0.5 * most) || row.columns[0]);
  }

  function distribution(chart, cell) {
    const name = data.names[cell.column];
    const known = data.distributions[cell.column];
    const caption = make("figcaption", {}, make("b", {}, make("bdi", {}, name)), " is ", make("bdi", {}, cell.text || "missing"), " in this row.");
    if (!known) {
      chart.replaceChildren(caption, make("p", { class: "muted" }, "The page leaves the distribution of this column out, to stay small."));
      return;
    }
    const band = known.type === "histogram" ? ` The shaded range, ${known.usual_text}, holds 95 % of them.` : "";
    const scale = known.logarithmic ? " Logarithmic axis." : "";
    const picture = columnChart(name, known, cell);
    const note = make("p", { class: "muted" }, `${known.note.charAt(0).toUpperCase()}${known.note.slice(1)}.${band}${scale}`);
    chart.replaceChildren(caption, ...(picture ? [picture] : []), note);
  }

  function columns() {
    const n = data.columns.length;
    const unused = data.columns.filter((entry) => !entry.used).length;
    at("columns-note").textContent =
      `${n < data.n_columns ? `The first ${number(n)} of ${number(data.n_columns)} columns` : `${number(n)} ${n === 1 ? "column" : "columns"}`}` +
      `${unused ? `, ${number(unused)} not used` : ""}. The part in the evidence is the mean over the rows above the threshold that are listed above (over the first row, if there are none).`;
    at("columns").tBodies[0].append(
      ...data.columns.map((entry) => {
        const bar = make("i");
        bar.style.setProperty("--part", `${100 * entry.share}%`);
        const part = make("span", { class: "part" }, make("span", { class: "track" }, bar), make("span", {}, percent(entry.share)));
        return make(
          "tr",
          { class: entry.used ? null : "unused" },
          make("td", {}, entry.name),
          make("td", {}, entry.kind),
          make("td", {}, entry.how),
          make("td", { class: "number" }, ...(entry.used ? [part] : ["–"])),
        );
      }),
    );
  }

  function reproduce() {
    const { command, settings, note } = data.reproduce;
    const box = at("again");
    if (command) box.append(make("pre", { tabindex: 0 }, command));
    box.append(make("p", {}, note));
    if (settings.length) {
      box.append(
        make("p", { class: "muted" }, "Settings of the detector that are not the defaults of RGLD():"),
        make("pre", { tabindex: 0 }, settings.map(([name, value]) => `${name} = ${value}`).join("\n")),
      );
    }
  }
})();
