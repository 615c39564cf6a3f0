// Marks the cell that is open and moves through the table by arrow keys.
(() => {
  function open() {
    const id = decodeURIComponent(location.hash.slice(1));
    const section = id.startsWith("cell-") ? document.getElementById(id) : null;
    for (const link of document.querySelectorAll("a[href^='#cell-']")) {
      if (section && link.getAttribute("href") === "#" + id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    section?.focus({ preventScroll: true });
  }

  const cells = [...document.querySelectorAll(".results tbody tr")].map((row) => [...row.querySelectorAll("a.cell")]);
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const row = cells.findIndex((line) => line.includes(document.activeElement));
    if (row >= 0 && event.key in moves) {
      const [down, right] = moves[event.key];
      const next = cells[row + down]?.[cells[row].indexOf(document.activeElement) + right];
      if (next) {
        next.focus();
        event.preventDefault();
      }
    } else if (event.key === "Escape" && location.hash.startsWith("#cell-")) {
      const from = cells.flat().find((link) => link.getAttribute("href") === location.hash);
      location.hash = "#table";
      from?.focus();
    }
  });
  // an open cell is printed with all its records, closed ones are not printed
  addEventListener("beforeprint", () => document.querySelectorAll(".panel:target details").forEach((part) => (part.open = true)));
  addEventListener("hashchange", open);
  open();
})();
