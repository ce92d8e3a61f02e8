"use strict";
/* Filters of the table of claims. Without them the page is whole: rows are there, and what is folded can be opened. */
for (const section of document.querySelectorAll("#claims")) {
  const rows = [...section.querySelectorAll("table.claims tbody tr")];
  const groups = [...section.querySelectorAll(".paper")];
  const form = section.querySelector("form.filter");
  const folds = [...section.querySelectorAll("details")];
  const text = (row) => (row.searched ??= row.textContent.toLowerCase());
  const update = () => {
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const paper = form.elements.paper.value;
    const verdict = form.elements.verdict.value;
    let count = 0;
    for (const row of rows) {
      const shown = (!paper || row.dataset.paper === paper) && (!verdict || row.dataset.verdict === verdict)
        && words.every((word) => text(row).includes(word));
      row.hidden = !shown;
      count += shown;
    }
    const filtered = Boolean(words.length || paper || verdict);
    for (const fold of folds) {
      const found = fold.querySelectorAll("tbody tr:not([hidden])").length;
      fold.hidden = found === 0;
      fold.open = filtered && found > 0;
    }
    for (const group of groups) group.hidden = group.querySelectorAll("tbody tr:not([hidden])").length === 0;
    for (const table of section.querySelectorAll("table.claims"))
      table.hidden = table.querySelectorAll("tbody tr:not([hidden])").length === 0;
    form.querySelector("output").textContent = `${count} of ${rows.length} claims`;
  };
  form.hidden = false;
  form.addEventListener("input", update);
  form.addEventListener("reset", () => setTimeout(update));
  form.addEventListener("submit", (event) => event.preventDefault());
  update();
}
