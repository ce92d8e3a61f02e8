"use strict";
/* Sorting, filtering, cards on narrow screens, words. Without this the page is whole: rows are there, and folds open. */

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
  table.classList.add("cards");
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
