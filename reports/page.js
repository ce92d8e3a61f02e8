"use strict";
/* Sorting, filtering, cards on narrow screens, values and a closer look at figures, words. Without this the page is whole: rows are there, and folds open. */

/* --- tables --- */

const UNITS = { "": 1, s: 1, min: 60, h: 3600, d: 86400, "%": 0.01, k: 1e3, M: 1e6, G: 1e9 };
const clean = (element) => element.textContent.replace(/\s+/g, " ").trim();

/* A number as people read it, "1.5 min", "12 %", "\u22121.2k", or NaN. */
function value(text) {
  const found = /^\(?([+\u2212-]?)\s*([\d,]*\.?\d+(?:e[+-]?\d+)?)\s*(min|[shdkMG%])?(?![a-zA-Z])/.exec(text);
  if (!found) return NaN;
  return (found[1] && found[1] !== "+" ? -1 : 1) * Number(found[2].replace(/,/g, "")) * UNITS[found[3] ?? ""];
}

/* Header of each column, "paper, ours" where the head has two rows. */
function headers(table) {
  const grid = [];
  [...table.tHead.rows].forEach((row, y) => {
    let x = 0;
    for (const cell of row.cells) {
      while (grid[y]?.[x]) x++;
      for (let down = 0; down < cell.rowSpan; down++)
        for (let across = 0; across < cell.colSpan; across++)
          (grid[y + down] ??= [])[x + across] = { cell, text: clean(cell), own: y + down === table.tHead.rows.length - 1 };
      x += cell.colSpan;
    }
  });
  const last = grid[grid.length - 1];
  return last.map((entry, x) => ({
    cell: entry.cell,
    sorts: entry.cell.colSpan === 1,
    text: [...new Set(grid.map((row) => row[x].text))].filter(Boolean).join(", "),
  }));
}

function compare(one, other, way) {
  const empty = (one.text === "") - (other.text === "");
  if (empty) return empty;
  const numbers = Number.isNaN(one.number) - Number.isNaN(other.number);
  if (numbers) return numbers;
  return way * (Number.isNaN(one.number) ? one.text.localeCompare(other.text) : one.number - other.number);
}

function sort(table, column, way) {
  const body = table.tBodies[0];
  const keys = new Map([...body.rows].map((row) => {
    const text = row.cells[column] ? clean(row.cells[column]) : "";
    return [row, { text, number: value(text) }];
  }));
  body.append(...[...body.rows].sort((one, other) => compare(keys.get(one), keys.get(other), way)));
}

function tools(table, columns) {
  const rows = [...table.tBodies[0].rows];
  const bar = document.createElement("div");
  bar.className = "tools";
  if (rows.length > 7 && !table.classList.contains("claims")) {
    const field = document.createElement("input");
    const count = document.createElement("output");
    field.type = "search";
    field.placeholder = "Filter rows";
    field.setAttribute("aria-label", `Filter rows of ${table.caption ? clean(table.caption) : "this table"}`);
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) row.hidden = !words.every((word) => clean(row).toLowerCase().includes(word));
      count.textContent = words.length ? `${rows.filter((row) => !row.hidden).length} of ${rows.length}` : "";
    });
    bar.append(field, count);
  }
  if (rows.length > 2) {
    const label = document.createElement("label");
    const select = document.createElement("select");
    label.className = "order";
    select.add(new Option("as listed", ""));
    columns.forEach(({ text }, x) => text && select.add(new Option(text, x)));
    const listed = [...rows];
    select.addEventListener("change", () => (select.value ? sort(table, Number(select.value), 1) : table.tBodies[0].append(...listed)));
    label.append("Order ", select);
    bar.append(label);
  }
  if (bar.childElementCount) table.before(bar);
}

for (const table of document.querySelectorAll("main table")) {
  if (!table.tHead || !table.tBodies.length) continue;
  const columns = headers(table);
  /* Rankings stay tables, whose first column does not scroll */
  if (!table.classList.contains("ranks")) table.classList.add("cards");
  /* Cards are no tables to the browser, but to readers of the screen */
  table.role = "table";
  for (const row of table.rows) row.role = "row";
  for (const row of table.tBodies[0].rows) {
    [...row.cells].forEach((cell, x) => {
      cell.role = cell.scope === "row" ? "rowheader" : "cell";
      if (cell.colSpan === 1 && cell.tagName === "TD" && columns[x]) cell.dataset.label = columns[x].text;
    });
  }
  if (table.tBodies[0].rows.length < 2) continue;
  const whole = [...table.tBodies[0].rows].every((row) => row.cells.length === columns.length || row.querySelector("[colspan]"));
  if (!whole) continue;
  columns.forEach(({ cell, sorts }, x) => {
    if (!sorts || !clean(cell)) return;
    const button = document.createElement("button");
    button.type = "button";
    if (cell.querySelector("a")) {
      /* A word with its sentence stays what it is */
      button.textContent = "\u2195";
      button.setAttribute("aria-label", `Sort by ${columns[x].text}`);
      cell.append(" ", button);
    } else {
      button.append(...cell.childNodes);
      cell.append(button);
    }
    button.addEventListener("click", () => {
      const way = cell.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      for (const other of columns) other.cell.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", way);
      sort(table, x, way === "ascending" ? 1 : -1);
    });
  });
  tools(table, columns);
}

/* --- claims --- */

for (const section of document.querySelectorAll("#claims")) {
  const rows = [...section.querySelectorAll("table.claims tbody tr")];
  const form = section.querySelector("form.filter");
  const groups = [...section.querySelectorAll(".paper")];
  const folds = [...section.querySelectorAll("details.fold")];
  const opened = new Map(folds.map((fold) => [fold, fold.open]));
  const text = (row) => (row.searched ??= row.textContent.toLowerCase());
  const some = (part) => part.querySelector("tbody tr:not([hidden])") !== null;
  const update = () => {
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const paper = form.elements.paper.value;
    const verdict = form.elements.verdict.value;
    const filtered = Boolean(words.length || paper || verdict);
    let count = 0;
    for (const row of rows) {
      const shown = (!paper || row.closest(".paper").dataset.paper === paper) && (!verdict || row.dataset.verdict === verdict)
        && words.every((word) => text(row).includes(word));
      row.hidden = !shown;
      count += shown;
    }
    for (const fold of folds) {
      fold.hidden = !some(fold);
      fold.open = filtered ? !fold.hidden : opened.get(fold);
    }
    for (const group of groups) group.hidden = !some(group);
    for (const table of section.querySelectorAll("table.claims")) table.hidden = !some(table);
    form.querySelector("output").textContent = `${count} of ${rows.length} claims`;
  };
  form.hidden = false;
  form.addEventListener("input", update);
  form.addEventListener("reset", () => setTimeout(update));
  form.addEventListener("submit", (event) => event.preventDefault());
  update();
}

/* --- figures: values where one points, and a closer look --- */

const NEAR = 14;
const note = document.createElement("div");
note.className = "value-card";
note.hidden = true;
note.setAttribute("role", "status");

/* The drawing in place of its picture, which cannot be pointed into. Marks have what they say in a title. */
function drawing(image) {
  const text = decodeURIComponent(image.src.slice(image.src.indexOf(",") + 1));
  const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", image.alt);
  svg.marks = [...svg.querySelectorAll("title")].filter((title) => title.parentNode !== svg).map((title) => {
    const mark = title.parentNode;
    mark.says = title.textContent;
    title.remove();
    return mark;
  });
  return document.adoptNode(svg);
}

function show(svg, mark) {
  note.textContent = mark.says;
  (svg.closest("dialog") ?? document.body).append(note);
  note.hidden = false;
  const place = mark.getBoundingClientRect();
  const below = place.bottom + 8;
  note.style.left = `${Math.max(4, Math.min(place.left, innerWidth - note.offsetWidth - 4))}px`;
  note.style.top = `${below + note.offsetHeight > innerHeight ? Math.max(4, place.top - note.offsetHeight - 8) : below}px`;
}

/* The mark at a point, else the one next to it. */
function nearest(svg, x, y) {
  let found = null, least = NEAR;
  for (const mark of svg.marks) {
    const { left, right, top, bottom } = mark.getBoundingClientRect();
    const away = Math.hypot(Math.max(left - x, 0, x - right), Math.max(top - y, 0, y - bottom));
    if (away < least || (away === least && away === 0)) [found, least] = [mark, away];
  }
  return found;
}

function speak(svg) {
  const point = (event) => {
    const mark = nearest(svg, event.clientX, event.clientY);
    if (mark) show(svg, mark);
    else note.hidden = true;
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);
  svg.addEventListener("pointerleave", () => (note.hidden = true));
}

/* Arrows go from mark to mark, for those who do not point. */
function step(svg, key) {
  const way = { ArrowRight: 1, ArrowLeft: -1 }[key];
  if (!way || !svg?.marks.length) return false;
  svg.at = ((svg.at ?? (way > 0 ? -1 : 0)) + way + svg.marks.length) % svg.marks.length;
  show(svg, svg.marks[svg.at]);
  return true;
}

const closer = document.createElement("dialog");
closer.className = "closer";
closer.innerHTML = '<form method="dialog"><p>Turn the wheel or pinch to zoom, drag to move, double-click to see all.</p><button>Close</button></form><div class="plot"></div>';
document.body.append(note, closer);

function look(image) {
  const svg = drawing(image);
  const whole = svg.getAttribute("viewBox").split(/[\s,]+/).map(Number);
  let box = [...whole];
  const touches = new Map();
  const view = (wanted) => svg.setAttribute("viewBox", (box = wanted).join(" "));
  /* What is at a point of the screen stays there. */
  const zoom = (x, y, factor) => {
    const width = Math.min(whole[2], Math.max(whole[2] / 40, box[2] * factor));
    const at = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM().inverse());
    const by = width / box[2];
    view(by === 1 ? box : width === whole[2] ? whole : [at.x - (at.x - box[0]) * by, at.y - (at.y - box[1]) * by, width, box[3] * by]);
  };
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.clientX, event.clientY, event.deltaY > 0 ? 1.2 : 1 / 1.2);
  }, { passive: false });
  svg.addEventListener("dblclick", () => view(whole));
  svg.addEventListener("pointerdown", (event) => {
    svg.setPointerCapture(event.pointerId);
    touches.set(event.pointerId, event);
  });
  svg.addEventListener("pointermove", (event) => {
    const before = touches.get(event.pointerId);
    if (!before) return;
    const other = [...touches.values()].find((touch) => touch.pointerId !== event.pointerId);
    if (other) {
      const apart = (touch) => Math.hypot(touch.clientX - other.clientX, touch.clientY - other.clientY);
      if (apart(event) > 0) zoom((event.clientX + other.clientX) / 2, (event.clientY + other.clientY) / 2, apart(before) / apart(event));
    } else {
      const scale = svg.getScreenCTM().a;
      view([box[0] - (event.clientX - before.clientX) / scale, box[1] - (event.clientY - before.clientY) / scale, box[2], box[3]]);
    }
    touches.set(event.pointerId, event);
  });
  for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, (event) => touches.delete(event.pointerId));
  speak(svg);
  closer.querySelector(".plot").replaceChildren(svg);
  closer.setAttribute("aria-label", image.alt);
  closer.showModal();
}
closer.addEventListener("close", () => (note.hidden = true));
closer.addEventListener("keydown", (event) => step(closer.querySelector("svg"), event.key) && event.preventDefault());

for (const plot of document.querySelectorAll("main .plot")) {
  const image = plot.querySelector("img");
  let svg = null;
  const draw = () => {
    if (svg) return svg;
    svg = drawing(image);
    speak(svg);
    image.hidden = true;
    plot.append(svg);
    return svg;
  };
  plot.addEventListener("pointerenter", draw);
  plot.addEventListener("keydown", (event) => {
    if (event.key === "Enter") look(image);
    else if (step(draw(), event.key)) event.preventDefault();
  });
  plot.addEventListener("blur", () => (note.hidden = true));
  const button = document.createElement("button");
  button.type = "button";
  button.className = "look";
  button.textContent = "Look closer";
  button.addEventListener("click", () => look(image));
  plot.after(button);
}

/* --- places and words --- */

function reveal() {
  const place = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!place) return;
  for (let fold = place.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  place.scrollIntoView();
}
addEventListener("hashchange", reveal);
reveal();

const card = document.createElement("div");
card.className = "term-card";
card.popover = "auto";
document.body.append(card);
document.addEventListener("click", (event) => {
  const word = event.target.closest?.("a.term");
  if (!word || !card.showPopover) return;
  event.preventDefault();
  card.textContent = word.title;
  card.showPopover();
  const place = word.getBoundingClientRect();
  card.style.left = `${Math.max(8, Math.min(place.left, innerWidth - card.offsetWidth - 8))}px`;
  card.style.top = `${place.bottom + card.offsetHeight + 8 > innerHeight ? Math.max(8, place.top - card.offsetHeight - 6) : place.bottom + 6}px`;
});

/* Which section is read */
const links = new Map([...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]));
const watcher = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries)
    if (isIntersecting) {
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(target.id)?.setAttribute("aria-current", "true");
    }
}, { rootMargin: "-20% 0px -70% 0px" });
for (const section of document.querySelectorAll("main > section[id]")) watcher.observe(section);
