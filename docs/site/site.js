// Formulas are drawn in the browser by KaTeX, which stands beside the pages.
for (const formula of globalThis.katex ? document.querySelectorAll(".arithmatex") : []) {
  const text = formula.textContent.trim();
  katex.render(text.slice(2, -2), formula, { displayMode: text.startsWith("\\["), throwOnError: false });
}
