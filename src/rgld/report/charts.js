"use strict";
// Charts: data with positions and ticks in, SVG out. Values of the table enter as text nodes only.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; a child that is a string becomes text. */
function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.map((child) => (typeof child === "string" ? unbroken(child) : child)));
  return element;
}

/* A number and its % stay on one line. */
function unbroken(text) {
  return text.replace(/(\d) %/g, "$1\u00a0%");
}

function percent(share) {
  const value = 100 * share;
  return value >= 9.95 || value === 0 ? `${value.toFixed(0)} %` : value >= 0.095 ? `${value.toFixed(1)} %` : "< 0.1 %";
}

/** A drawing area: maps positions of two axes to the inside of the margins. */
function frame(width, height, margin, x, y) {
  const inner = { left: margin.left, right: width - margin.right, top: margin.top, bottom: height - margin.bottom };
  const part = (value, axis) => (value - axis.low) / (axis.high - axis.low);
  return {
    ...inner,
    x: (value) => inner.left + part(value, x) * (inner.right - inner.left),
    y: (value) => inner.bottom - part(value, y) * (inner.bottom - inner.top),
    picture: (label) => draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }),
  };
}

/** Ticks below the area; a label that would touch the one before is left out. */
function xTicks(area, ticks, label) {
  const group = draw("g");
  let end = -Infinity;
  group.append(draw("line", { class: "axis", x1: area.left, x2: area.right, y1: area.bottom, y2: area.bottom }));
  for (const [at, text] of ticks) {
    const x = area.x(at);
    const half = 3.4 * text.length;
    const middle = Math.min(x, area.right + 10 - half); // a label at the end of the axis stays within the picture
    if (middle - half < end + 8 || x > area.right + 1 || x < area.left - 1) continue;
    end = middle + half;
    group.append(
      draw("line", { class: "axis", x1: x, x2: x, y1: area.bottom, y2: area.bottom + 4 }),
      draw("text", { x: middle, y: area.bottom + 16, "text-anchor": "middle" }, text),
    );
  }
  const middle = (area.left + area.right) / 2;
  if (label) group.append(draw("text", { x: middle, y: area.bottom + (ticks.length ? 33 : 17), "text-anchor": "middle" }, label));
  return group;
}

function yTicks(area, ticks, label) {
  const group = draw("g");
  for (const [at, text] of ticks) {
    const y = area.y(at);
    group.append(
      draw("line", { class: "grid", x1: area.left, x2: area.right, y1: y, y2: y }),
      draw("text", { x: area.left - 6, y: y + 4, "text-anchor": "end" }, text),
    );
  }
  const middle = (area.top + area.bottom) / 2;
  if (label) group.append(draw("text", { transform: `translate(11 ${middle}) rotate(-90)`, "text-anchor": "middle" }, label));
  return group;
}

/** A text beside a vertical line, on the side that has room. */
function beside(area, x, y, text, kind) {
  const right = x < (area.left + area.right) / 2;
  return draw("text", { class: `on ${kind}`, x: right ? x + 6 : x - 6, y, "text-anchor": right ? "start" : "end" }, text);
}

/** The distribution of the scores, counts on a logarithmic axis: a bin of one row must be seen beside one of thousands. */
function scoreChart(chart) {
  const height = (count) => Math.log10(1 + count);
  const most = Math.max(...chart.counts, 1);
  const yAxis = { low: 0, high: height(most) * 1.12 };
  const area = frame(400, 270, { left: 46, right: 12, top: 12, bottom: 42 }, chart, yAxis);
  const above = chart.above.reduce((sum, count) => sum + count, 0);
  const all = chart.counts.reduce((sum, count) => sum + count, 0);
  const picture = area.picture(
    `Histogram of the scores of ${all.toLocaleString("en")} rows by ${chart.label}; ` +
      `${above.toLocaleString("en")} rows lie above the ${chart.threshold_text}.`,
  );
  const powers = [];
  for (let count = 1; count <= most; count *= 10) powers.push([height(count), count.toLocaleString("en")]);
  picture.append(yTicks(area, [[0, "0"], ...powers], "rows (logarithmic)"));
  const step = (chart.high - chart.low) / chart.counts.length;
  chart.counts.forEach((count, i) => {
    if (!count) return;
    const left = area.x(chart.low + i * step);
    const right = area.x(chart.low + (i + 1) * step);
    const top = area.y(height(count));
    const kind = 2 * chart.above[i] >= count ? "anomaly" : "ordinary";
    picture.append(draw("rect", { class: kind, x: left + 0.5, width: Math.max(right - left - 1, 1), y: top, height: area.bottom - top }));
  });
  picture.append(xTicks(area, chart.ticks, chart.label));
  if (chart.threshold !== null) {
    const x = area.x(chart.threshold);
    picture.append(draw("line", { class: "threshold", x1: x, x2: x, y1: area.top, y2: area.bottom }));
    picture.append(beside(area, x, area.top + 9, chart.threshold_text, "strong"));
  }
  return picture;
}

/** Points of three groups. Returns the picture and a function that marks one of the table's rows. */
function pointChart(chart, rows, label, choose) {
  const ticked = chart.x.ticks.length > 0;
  const area = frame(400, 270, { left: ticked ? 58 : 24, right: 12, top: 12, bottom: ticked ? 42 : 26 }, chart.x, chart.y);
  const picture = area.picture(label);
  picture.append(yTicks(area, chart.y.ticks, chart.y.label), xTicks(area, chart.x.ticks, chart.x.label));
  if (!ticked) {
    picture.append(draw("rect", { class: "axis", x: area.left, y: area.top, width: area.right - area.left, height: area.bottom - area.top, rx: 4 }));
  }
  const spot = ([x, y], kind, r) => draw("circle", { class: kind, cx: area.x(x), cy: area.y(y), r });
  for (const point of chart.points.ordinary) picture.append(spot(point, "ordinary", 2));
  for (const point of chart.points.flagged) picture.append(spot(point, "anomaly faint", 2.2));
  for (let i = chart.points.top.length - 1; i >= 0; i--) {
    const dot = spot(chart.points.top[i], rows[i].flagged ? "anomaly row" : "ordinary row", 3.4);
    dot.append(draw("title", {}, [rows[i].title, ...rows[i].reasons.slice(0, 1)].join(": ")));
    dot.addEventListener("click", () => choose(i));
    picture.append(dot);
  }
  const halo = draw("circle", { class: "halo", r: 6.5 });
  picture.append(halo);
  return {
    picture,
    mark(i) {
      halo.setAttribute("cx", area.x(chart.points.top[i][0]));
      halo.setAttribute("cy", area.y(chart.points.top[i][1]));
    },
  };
}

/** How a column's values are distributed, and where a row's value lies. */
function columnChart(name, column, cell) {
  if (column.type === "histogram") return histogram(name, column, cell);
  return column.type === "bars" ? valueBars(name, column, cell) : null;
}

function histogram(name, column, cell) {
  const most = Math.max(...column.counts, 1);
  const area = frame(440, 170, { left: 16, right: 16, top: 26, bottom: 22 }, column, { low: 0, high: most });
  const shown = cell.text === "" ? "has no value" : `is ${cell.text}`;
  const picture = area.picture(`Histogram of ${name}. In this row it ${shown}; 95 % of the rows lie in ${column.usual_text}.`);
  const clamp = (x) => Math.min(Math.max(x, area.left), area.right);
  const [low, high] = column.usual.map((value) => clamp(area.x(value)));
  picture.append(draw("rect", { class: "band", x: low, width: Math.max(high - low, 1), y: area.top, height: area.bottom - area.top, rx: 2 }));
  const step = (column.high - column.low) / column.counts.length;
  column.counts.forEach((count, i) => {
    if (!count) return;
    const left = area.x(column.low + i * step);
    const right = area.x(column.low + (i + 1) * step);
    // A bin of few rows is drawn a pixel high: it is not empty.
    const top = Math.min(area.y(count), area.bottom - 1.5);
    picture.append(draw("rect", { class: "ordinary", x: left + 0.4, width: Math.max(right - left - 0.8, 0.8), y: top, height: area.bottom - top }));
  });
  picture.append(xTicks(area, column.ticks, ""));
  if (cell.at !== undefined) {
    const beyond = cell.at < column.low ? "◂ " : cell.at > column.high ? " ▸" : "";
    const x = clamp(area.x(cell.at));
    picture.append(draw("line", { class: "mark", x1: x, x2: x, y1: area.top - 8, y2: area.bottom }));
    const text = beyond === "◂ " ? `◂ ${cell.text}` : `${cell.text}${beyond}`;
    picture.append(beside(area, x, area.top - 10, text, "strong"));
  }
  return picture;
}

function valueBars(name, column, cell) {
  const bars = column.bars.map(([label, share], i) => ({ label, share, chosen: cell.bar !== undefined && cell.bar[0] === i }));
  if (cell.bar !== undefined && cell.bar[0] < 0) bars.push({ label: cell.text || "(missing)", share: cell.bar[1], chosen: true });
  const most = Math.max(...bars.map((bar) => bar.share), 1e-9);
  const area = frame(440, bars.length * 22 + 8, { left: 164, right: 66, top: 4, bottom: 4 }, { low: 0, high: most }, { low: 0, high: 1 });
  const picture = area.picture(`Shares of the values of ${name}: ${bars.map((bar) => `${bar.label} ${percent(bar.share)}`).join(", ")}.`);
  bars.forEach((bar, i) => {
    const y = area.top + i * 22;
    const label = bar.label.length > 24 ? `${bar.label.slice(0, 23)}…` : bar.label;
    const kind = bar.chosen ? "strong" : "";
    picture.append(
      draw("text", { class: kind, x: area.left - 8, y: y + 15, "text-anchor": "end" }, label),
      draw("rect", { class: bar.chosen ? "anomaly" : "ordinary", x: area.left, y: y + 4, width: Math.max(area.x(bar.share) - area.left, 2), height: 14, rx: 3 }),
      draw("text", { class: kind, x: Math.max(area.x(bar.share), area.left + 2) + 6, y: y + 15 }, bar.share ? percent(bar.share) : "never seen"),
    );
  });
  return picture;
}

/** Two distributions of one column: of the training rows, filled, and of the rows of this table, outlined. */
function driftChart(chart) {
  const most = Math.max(...chart.training, ...chart.new, 1e-9);
  const label = `${chart.name}: ${chart.text}`;
  if (chart.type === "bars") return driftBars(chart, most, label);
  const area = frame(300, 150, { left: 8, right: 8, top: 8, bottom: 24 }, chart, { low: 0, high: most * 1.08 });
  const picture = area.picture(label);
  const step = (chart.high - chart.low) / chart.new.length;
  chart.training.forEach((share, i) => {
    if (!share) return;
    const left = area.x(chart.low + i * step);
    const right = area.x(chart.low + (i + 1) * step);
    picture.append(draw("rect", { class: "ordinary", x: left, width: Math.max(right - left - 0.5, 0.5), y: area.y(share), height: area.bottom - area.y(share) }));
  });
  let path = `M${area.x(chart.low)} ${area.bottom}`;
  chart.new.forEach((share, i) => {
    path += `V${area.y(share)}H${area.x(chart.low + (i + 1) * step)}`;
  });
  picture.append(draw("path", { class: "outline", d: `${path}V${area.bottom}` }), xTicks(area, chart.ticks, ""));
  return picture;
}

function driftBars(chart, most, label) {
  const line = 34;
  const height = chart.bars.length * line + 6;
  const picture = draw("svg", { viewBox: `0 0 300 ${height}`, role: "img", "aria-label": label });
  chart.bars.forEach((text, i) => {
    const y = i * line + 4;
    picture.append(
      draw("text", { x: 0, y: y + 10 }, text),
      draw("rect", { class: "ordinary", x: 0, y: y + 14, width: Math.max((230 * chart.training[i]) / most, 1), height: 6 }),
      draw("rect", { class: "anomaly", x: 0, y: y + 21, width: Math.max((230 * chart.new[i]) / most, 1), height: 6 }),
      draw("text", { x: 300, y: y + 24, "text-anchor": "end" }, `${percent(chart.new[i])} / ${percent(chart.training[i])}`),
    );
  });
  return picture;
}
