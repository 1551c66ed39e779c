// A click on a column's head sorts its table; without scripts tables stay as they are.
for (const table of document.querySelectorAll("table.sortable")) {
  table.classList.add("live");
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, i) => (row.cells[i].dataset.sort ?? row.cells[i].textContent).replace(/,/g, "");
  const order = (a, b) => a - b || String(a).localeCompare(String(b), "en", { numeric: true });
  heads.forEach((head, i) => {
    const sort = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => (down ? -1 : 1) * order(key(a, i), key(b, i)));
      table.tBodies[0].append(...rows);
    };
    head.tabIndex = 0;
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      sort();
    });
  });
}
